"""KV at the switch: computed again from the tokens or moved from the pipeline, and which is faster when."""

from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.records import Asked, AtLeastOne, NotNegative, Positive
from workbench.scaling.kernels.recompute import crossovers, move_seconds, recompute_seconds


class Switching(Asked):
    """What it takes to go on with a request on another node.

    Attributes:
        parameters: of the model.
        flops_per_s: that a prefill reaches on the node's accelerators together.
        least_s: of any prefill: reading all weights once.
        kv_bytes: of a token.
        nodes: of the pipeline; each holds an equal share of a request's KV.
        bytes_per_s, alpha_s: of the link into the node, and its overhead for each sender.
    """

    parameters: Positive
    flops_per_s: Positive
    least_s: NotNegative = 0.0
    kv_bytes: Positive
    nodes: AtLeastOne
    bytes_per_s: Positive
    alpha_s: NotNegative = 0.0

    @property
    def token_s(self) -> float:
        """Seconds of prefill for each token: 2 operations a parameter over the rate."""
        return 2 * self.parameters / self.flops_per_s

    @property
    def move_token_s(self) -> float:
        """Seconds of the link for the KV of each token that is not there yet."""
        return self.kv_bytes * (self.nodes - 1) / self.nodes / self.bytes_per_s


class Faster(NamedTuple):
    """Recomputing is faster for more than `low` and fewer than `high` tokens; for none where low is not below high."""

    low: float
    high: float


def recompute_s(switching: Switching, tokens) -> np.ndarray:
    """Seconds until the KV of so many tokens is computed again, float64[n] (λScale's way; attention left out)."""
    tokens = _tokens(tokens)
    out = np.empty(tokens.size)
    recompute_seconds(tokens, switching.token_s, switching.least_s, out)
    return out


def move_s(switching: Switching, tokens) -> np.ndarray:
    """Seconds until the KV of so many tokens has come from the other nodes of the pipeline, float64[n]."""
    tokens = _tokens(tokens)
    out = np.empty(tokens.size)
    move_seconds(tokens, switching.kv_bytes, switching.nodes, switching.bytes_per_s, switching.alpha_s, out)
    return out


def faster_to_recompute(switching: Switching) -> Faster:
    """For which numbers of tokens is recomputing faster than moving?

    >>> link = {"kv_bytes": 1.0, "nodes": 2, "bytes_per_s": 1.0, "alpha_s": 3.0}
    >>> faster_to_recompute(Switching(parameters=1.0, flops_per_s=1.0, least_s=4.0, **link))
    Faster(low=2.0, high=2.0)
    """
    fixed_s = (switching.nodes - 1) * switching.alpha_s
    return Faster(*crossovers(switching.token_s, switching.least_s, switching.move_token_s, fixed_s))


def _tokens(tokens) -> np.ndarray:
    tokens = np.atleast_1d(np.asarray(tokens, dtype=float))
    if tokens.ndim != 1 or not (np.isfinite(tokens) & (tokens >= 0)).all():
        raise InputError("are no numbers of tokens", "give finite numbers of 0 or more", field="tokens")
    return tokens
