"""How matrix products and attention disturb each other, from measured shares of an accelerator."""

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pydantic import Field

from workbench.errors import InputError
from workbench.paths import facts_folder
from workbench.profiles.checking import build
from workbench.profiles.toml_reading import read_toml
from workbench.records import Positive, Record, Status


class SharesReached(Record):
    """Rate of attention over its rate alone, by the share of the accelerator it is given; products get the rest.

    Attributes:
        attention_share, attention_rate: rising, the last ones 1.
    """

    attention_share: tuple[Positive, ...]
    attention_rate: tuple[Positive, ...]
    status: Status
    source: str = Field(min_length=9)


class KernelShares(Record):
    """Shares of the data sheet's compute and memory rates that kernels reach."""

    compute_share: Positive
    memory_share: Positive
    status: Status
    source: str = Field(min_length=9)


class Facts(Record):
    """The file `data/blending/interference.toml`."""

    nanoflow: SharesReached
    reached: KernelShares


def facts() -> Facts:
    """What is known of kernels that run side by side, each fact with its source (`data/blending/interference.toml`)."""
    return _read(facts_folder() / "blending" / "interference.toml")


@functools.cache
def _read(path: Path) -> Facts:
    return build(Facts, read_toml(path), file=path)


class Hull(NamedTuple):
    """The corners (rate of products, rate of attention) that mixing in time can reach, from (1, 0) to (0, 1)."""

    corners: tuple[tuple[float, float], ...]


def hull(product_rate, attention_rate) -> Hull:
    """The upper hull of reachable pairs of rates, with (1, 0) and (0, 1).

    Parameters:
        product_rate, attention_rate: pairs that were measured.
    """
    points = sorted({(1.0, 0.0), (0.0, 1.0), *zip(map(float, product_rate), map(float, attention_rate), strict=True)})
    corners: list[tuple[float, float]] = []
    for point in points:
        while len(corners) > 1 and _turns_up(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return Hull(tuple(reversed(corners)))


def _turns_up(first, second, third) -> bool:
    (a, b), (c, d), (e, f) = first, second, third
    return (c - a) * (f - b) - (d - b) * (e - a) >= -1e-12


def slopes(shape: Hull) -> tuple[float, float]:
    """The slopes (a, b) of max(T_c + a T_m, T_m + b T_c), the least overlapped time with these rates.

    On the line from (1, 0) to a corner (x, y) it takes T_c + T_m (1 - x) / y, on that from the corner to (0, 1)
    T_m + T_c (1 - y) / x.

    Raises:
        InputError: the hull has not one corner between its ends.
    """
    if len(shape.corners) != 3:
        raise InputError(
            f"the hull has {len(shape.corners) - 2} corners between its ends", "two slopes describe a hull with one"
        )
    x, y = shape.corners[1]
    return (1.0 - x) / y, (1.0 - y) / x


def nanoflow_slopes() -> tuple[float, float]:
    """The slopes (a, b) that NanoFlow's measured shares give, each from 0 (hidden) to 1 (one after the other)."""
    shares = facts().nanoflow
    return slopes(hull(1.0 - np.array(shares.attention_share), shares.attention_rate))
