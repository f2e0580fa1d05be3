"""Loading weights through tiers of storage: SSD, host memory, GPU."""

from collections.abc import Sequence
from typing import NamedTuple

from workbench.errors import InputError
from workbench.records import positive


class Tier(NamedTuple):
    """One leg of the way to the GPU: where the bytes are read from, and how fast."""

    name: str
    bytes_per_s: float


def load_seconds(weight_bytes: float, tiers: Sequence[Tier], chunk_bytes: float | None = None) -> float:
    """How long do weights take through all tiers, in order?

    With chunks the legs overlap: the first chunk passes all of them, the others follow at the pace of the slowest,
    Σ c/B_j + (n - 1) c / min B_j with n = S/c. Without, each leg moves everything before the next begins.

    Parameters:
        weight_bytes: S. tiers: legs with their rates B_j.
        chunk_bytes: c; None for no overlap. A chunk is at most the whole.

    Returns:
        Seconds.

    Raises:
        InputError: no leg, or a number that is not above 0.

    >>> way = [Tier("SSD", 1e9), Tier("PCIe", 4e9)]
    >>> load_seconds(8e9, way), load_seconds(8e9, way, 1e9)
    (10.0, 8.25)
    """
    size = positive(weight_bytes, "weight_bytes")
    if not tiers:
        raise InputError("is empty", "name at least one leg", field="tiers")
    pace = [1 / positive(tier.bytes_per_s, f"rate of {tier.name}") for tier in tiers]
    chunk = size if chunk_bytes is None else min(positive(chunk_bytes, "chunk_bytes"), size)
    return chunk * sum(pace) + (size - chunk) * max(pace)
