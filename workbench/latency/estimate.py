"""One answer: how long a step takes, the bound below which none can be, and where the number comes from."""

import numpy as np
import polars as pl

from workbench.records import Record, Status


class Estimate(Record):
    """How long a step takes.

    Attributes:
        seconds: a number, or an array of the shape that was asked for.
        bound_s: the roofline at data-sheet peaks, which no step beats.
        outside: whether the question lay outside the measurements behind the answer.
        source: whose numbers it rests on, in one sentence.
        status: how they are known.
    """

    seconds: float | np.ndarray
    bound_s: float | np.ndarray
    outside: bool | np.ndarray
    source: str
    status: Status

    def table(self) -> pl.DataFrame:
        """One row a step: seconds, bound_s, outside_fitted_range, status, source."""
        return pl.DataFrame(
            {
                "seconds": np.atleast_1d(self.seconds).reshape(-1),
                "bound_s": np.atleast_1d(self.bound_s).reshape(-1),
                "outside_fitted_range": np.atleast_1d(self.outside).reshape(-1),
            }
        ).with_columns(status=pl.lit(self.status), source=pl.lit(self.source))

    def __repr__(self) -> str:
        flat = np.atleast_1d(self.seconds).reshape(-1)
        if flat.size == 1:
            text = f"{flat[0] * 1e3:.4g} ms"
        elif flat.size:
            text = f"{flat.size} steps of {flat.min() * 1e3:.4g} to {flat.max() * 1e3:.4g} ms"
        else:
            text = "no steps"
        beyond = "; partly outside what was fitted" if np.any(self.outside) else ""
        return f"<{text} ({self.status}: {self.source}{beyond})>"

    __str__ = __repr__
