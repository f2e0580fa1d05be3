"""What this machine takes for the parts of a step, fitted to readings, and what a run then takes."""

from itertools import product
from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.layout import DECODES, KV_READ, PAIRS, TOKENS
from workbench.blending.model.density import checked
from workbench.blending.policy import overlapped_s
from workbench.errors import InputError

GRID = np.linspace(1.0, 0.0, 101)
"""Slopes that are tried, from nothing hidden to everything: of equals the first is taken, with the least hidden."""


class PartCosts(NamedTuple):
    """Seconds of the two parts of a step, each alone.

    Attributes:
        token_s, pair_s, prompts_s: the part that computes: of a prompt token, of the growth of squared prompt positions
            (attention), of the part itself wherever there are prompts.
        decode_s, read_s, decodes_s: the part that reads memory: of a request that makes a token, of a KV token that is
            read, of the part itself wherever somebody decodes.
    """

    token_s: float
    pair_s: float
    prompts_s: float
    decode_s: float
    read_s: float
    decodes_s: float

    def compute_s(self, prompt_tokens, pairs):
        """Seconds of the part that computes, arrays."""
        return np.where(prompt_tokens > 0, self.prompts_s + self.token_s * prompt_tokens + self.pair_s * pairs, 0.0)

    def memory_s(self, decodes, read):
        """Seconds of the part that reads memory, arrays."""
        return np.where(decodes > 0, self.decodes_s + self.decode_s * decodes + self.read_s * read, 0.0)


class SlopeFit(NamedTuple):
    """The slopes of max(T_c + a T_m, T_m + b T_c) that readings give.

    Attributes:
        memory_slope, compute_slope: a and b, each from 0 (hidden) to 1 (one after the other).
        error: median relative error on readings that were not fitted.
        hidden: share of the shorter parts' time that was hidden, over all readings; below 0 where they take longer
            beside each other than one after the other.
        fitted_s: of each reading what the slopes give.
    """

    memory_slope: float
    compute_slope: float
    error: float
    hidden: float
    fitted_s: np.ndarray


def fit_parts(prompt_tokens, pairs, compute_s, decodes, read, memory_s) -> PartCosts:
    """Costs of the parts by least squares on relative errors, none below 0.

    Parameters:
        prompt_tokens, pairs, compute_s: readings of the part that computes, arrays.
        decodes, read, memory_s: readings of the part that reads memory, arrays.
    """
    from scipy.optimize import nnls

    def fitted(first, second, seconds) -> list[float]:
        ones = np.ones(len(seconds))
        return nnls(np.column_stack([first, second, ones]) / np.asarray(seconds)[:, None], ones)[0].tolist()

    return PartCosts(*fitted(prompt_tokens, pairs, compute_s), *fitted(decodes, read, memory_s))


def fit_slopes(compute_s, memory_s, together_s) -> SlopeFit:
    """Slopes by least squares on relative errors of every second reading; the others judge them.

    Parameters:
        compute_s, memory_s, together_s: seconds of both parts alone and beside each other, float64[n], n at least 4.

    Raises:
        InputError: fewer readings, unequal numbers of them, or seconds that are not above 0.
    """
    compute, memory, together = (np.ascontiguousarray(values, float) for values in (compute_s, memory_s, together_s))
    if compute.size < 4:
        raise InputError(f"are {compute.size}", "give at least 4, to fit two slopes and judge them", field="readings")
    for values, name in ((compute, "compute_s"), (memory, "memory_s"), (together, "together_s")):
        if checked(values, name, above=True).shape != compute.shape:
            raise InputError(f"holds {values.size} readings for {compute.size}", "give one each", field=name)
    first, second, both = (values[::2].copy() for values in (compute, memory, together))
    pairs = list(product(GRID.tolist(), GRID.tolist()))
    slopes = min(pairs, key=lambda pair: ((overlapped_s(first, second, *pair) / both - 1) ** 2).sum())
    fitted = overlapped_s(compute, memory, *slopes)
    error = np.abs(fitted / together - 1)[1::2]
    hidden = (compute + memory - together).sum() / np.minimum(compute, memory).sum()
    return SlopeFit(*slopes, float(np.median(error)), float(hidden), fitted)


def run_seconds(log: np.ndarray, costs: PartCosts, memory_slope: float, compute_slope: float) -> float:
    """Seconds of all steps of a run's log, whose two parts overlap with these slopes."""
    compute = costs.compute_s(log[:, TOKENS] - log[:, DECODES], log[:, PAIRS])
    memory = costs.memory_s(log[:, DECODES], log[:, KV_READ])
    return float(overlapped_s(compute, memory, memory_slope, compute_slope).sum())
