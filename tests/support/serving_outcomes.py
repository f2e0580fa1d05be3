"""Outcomes of serving runs, compared."""

import numpy as np

from workbench.serving.model import Outcome


def differences(one: Outcome, other: Outcome) -> list[str]:
    """The fields that are not the same in every bit (any NaN is as good as any other)."""
    return [
        name
        for name, a, b in zip(Outcome._fields, one, other, strict=True)
        if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    ]
