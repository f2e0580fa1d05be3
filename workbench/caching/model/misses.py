"""Instances that a load needs, and the starts among them that find no copy in a host's memory."""

from typing import NamedTuple

import numpy as np

from workbench.caching.kernels.misses import scale_up_misses
from workbench.errors import InputError
from workbench.records import positive, whole


class ScaleUps(NamedTuple):
    """By second: instances needed, instances started, and those of them that find no kept copy; int64[n] each."""

    need: np.ndarray
    started: np.ndarray
    missed: np.ndarray

    @property
    def miss_share(self) -> float:
        """Misses over starts, NaN where nothing was started."""
        started = int(self.started.sum())
        return int(self.missed.sum()) / started if started else float("nan")


def instances_needed(arrival_s, prompt_tokens, tokens_per_s: float, headroom: float = 4.0) -> np.ndarray:
    """How many instances the prompts of each second ask for: ⌈headroom x tokens of the second / rate of one⌉, int64.

    BlitzScale's script for its Figure 4 takes a headroom of 4 and 13,000 tokens/s.

    Parameters:
        arrival_s: float64[n], in order from 0. prompt_tokens: int[n].
        tokens_per_s: prefill rate of one instance.
        headroom: how many times as many instances as the tokens need.

    Raises:
        InputError: unequal lengths, or a number that cannot be.

    >>> instances_needed([0.2, 0.9, 2.5], [3000, 1000, 3251], 13000).tolist()
    [2, 0, 2]
    """
    arrival, tokens = np.asarray(arrival_s, dtype=float), np.asarray(prompt_tokens, dtype=float)
    if arrival.ndim != 1 or arrival.shape != tokens.shape or not arrival.size:
        raise InputError("does not hold one length an arrival", "give two rows of one length", field="prompt_tokens")
    if not np.isfinite(arrival).all() or arrival.min() < 0 or not np.isfinite(tokens).all() or tokens.min() < 0:
        raise InputError("holds a number that is negative or none", "give seconds and tokens", field="arrival_s")
    rate = positive(tokens_per_s, "tokens_per_s") / positive(headroom, "headroom")
    return np.ceil(np.bincount(arrival.astype(np.int64), tokens) / rate).astype(np.int64)


def scale_ups(need, keep_s: int) -> ScaleUps:
    """Which starts find no host copy when hosts keep what they used for `keep_s` seconds?

    Parameters:
        need: int[n], instances needed in each second.
        keep_s: whole seconds, 1 or more.

    Raises:
        InputError: no row of whole numbers of 0 or more; no whole number of seconds.

    >>> scale_ups([1, 2, 0, 3, 0, 0, 2], 2).missed.tolist()
    [0, 1, 0, 1, 0, 0, 2]
    """
    needed = np.asarray(need, dtype=np.int64)
    if needed.ndim != 1 or not needed.size or needed.min() < 0:
        raise InputError("needs a row of instances by second", "give whole numbers of 0 or more", field="need")
    started, missed = np.empty_like(needed), np.empty_like(needed)
    scale_up_misses(needed, whole(keep_s, "keep_s", 1), started, missed)
    return ScaleUps(needed, started, missed)
