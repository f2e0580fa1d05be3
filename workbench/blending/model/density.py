"""Compute density: how long a request computes over how long it reads memory, alone and in a steady batch."""

from typing import NamedTuple

import numpy as np

from workbench.blending.model.costs import Costs
from workbench.errors import InputError
from workbench.records import share


class Density(NamedTuple):
    """What is counted in a density.

    Attributes:
        attention: prefill attention, 4 p^2 H L FLOP, which the paper drops for prompts of a few hundred tokens.
        weights: weight reads; a step that keeps its pool full reads W beside M, so memory takes (1 + W / M) as long.
        length_biased: mean squares in place of squared means where many requests are averaged, because those in flight
            are the long ones.
    """

    attention: bool = False
    weights: bool = False
    length_biased: bool = False

    def pair_weight(self, costs: Costs) -> float:
        """Compute of a squared prompt token, over that of a token; 0 where it is not counted."""
        return costs.attention if self.attention else 0.0

    def balance(self, costs: Costs) -> float:
        """KV tokens whose reading takes as long as the arithmetic of one token, weight reads included if counted."""
        return costs.balance / (1.0 + costs.weight_bytes / costs.pool_bytes if self.weights else 1.0)


PLAIN = Density()


def checked(values, name: str, above: bool = False) -> np.ndarray:
    """Finite numbers from 0 on, or above 0, as an array of any shape; else an `InputError` that names them."""
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise InputError("holds something that is no number", "give numbers", field=name) from None
    if not array.size:
        raise InputError("is empty", "give at least one number", field=name)
    bad = ~np.isfinite(array) | (array <= 0 if above else array < 0)
    if bad.any():
        remedy = "give finite numbers " + ("above 0" if above else "from 0 on")
        raise InputError(f"holds {array[bad][0]:g}", remedy, field=name)
    return array


def _lengths(prompt, output) -> tuple[np.ndarray, np.ndarray]:
    """Prompt and output tokens as arrays that fit together."""
    sides = checked(prompt, "prompt"), checked(output, "output", above=True)
    if sides[0].ndim and sides[1].ndim and sides[0].shape != sides[1].shape:
        raise InputError(f"holds {sides[1].size} numbers for {sides[0].size} prompts", "give one each", field="output")
    return sides


def compute_seconds(prompt, output, costs: Costs, about: Density = PLAIN):
    """Seconds that requests compute, Comp(r) (BlendServe §4.1).

    Parameters:
        prompt, output: tokens of the requests, numbers or arrays of one shape, which the seconds have too.
        costs: of model and accelerator.
        about: what counts.

    Raises:
        InputError: prompts below 0, outputs that are not above 0, or lengths that do not go together.
    """
    prompt, output = _lengths(prompt, output)
    return (prompt + output + about.pair_weight(costs) * prompt**2) * costs.token_s


def memory_seconds(prompt, output, costs: Costs, about: Density = PLAIN):
    """Seconds that requests read KV, Mem(r) = (p d + d^2 / 2) KV tokens (BlendServe §4.1); as `compute_seconds`."""
    prompt, output = _lengths(prompt, output)
    return (prompt * output + output**2 / 2) * costs.token_s / about.balance(costs)


def request_density(prompt, output, costs: Costs, about: Density = PLAIN):
    """Compute over memory time of requests, ρ(r); above 1 they are compute-intensive; as `compute_seconds`."""
    return compute_seconds(prompt, output, costs, about) / memory_seconds(prompt, output, costs, about)


def total_density(prompt, output, costs: Costs, shared: float = 0.0) -> float:
    """Density of many requests together, (1 - s) Σ Comp / Σ Mem.

    Parameters:
        prompt, output: tokens of the requests, arrays.
        shared: s, share of the compute that prefix hits save; KV is read all the same.
    """
    compute = compute_seconds(prompt, output, costs).sum()
    return float((1 - share(shared, "shared")) * compute / memory_seconds(prompt, output, costs).sum())


class SteadyBatch(NamedTuple):
    """A batch that keeps its pool full with requests at all stages of their decoding.

    Attributes:
        decodes: requests that decode. tokens: tokens computed a step. compute_s, memory_s: seconds of a step.
    """

    decodes: float
    tokens: float
    compute_s: float
    memory_s: float

    @property
    def density(self) -> float:
        """Compute over memory time of the step."""
        return self.compute_s / self.memory_s


def steady_batch(prompt, output, costs: Costs, length_biased: bool = True) -> SteadyBatch:
    """The batch that requests of these lengths form, admitted as fast as others finish (BlendServe §4.2).

    Parameters:
        prompt, output: tokens of the requests, numbers or arrays.
        length_biased: whether a request in flight holds Σ(p d + d^2 / 2) / Σ d tokens on average, as it does, or
            E[p] + E[d] / 2, as printed; the same where all are alike.

    The density of the batch is that of the requests. With the printed mean more requests are let in than fit: the batch
    then reads more than the pool holds, and `memory_s` shows it.
    """
    prompt, output = map(np.atleast_1d, _lengths(prompt, output))
    held = float((prompt * output + output**2 / 2).sum() / output.sum())
    assumed = held if length_biased else float(prompt.mean() + output.mean() / 2)
    decodes = costs.pool_bytes / (assumed * costs.kv_bytes_per_token)
    tokens = decodes * float((prompt.mean() + output.mean()) / output.mean())
    return SteadyBatch(decodes, tokens, tokens * costs.token_s, decodes * held * costs.kv_token_s)
