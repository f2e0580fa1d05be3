"""Three questions with closed answers: when memory binds, how large a balanced batch is, what reordering can gain."""

import numpy as np

from workbench.blending.model.costs import Costs
from workbench.blending.model.density import PLAIN, Density, checked
from workbench.blending.policy import overlapped_s
from workbench.errors import InputError
from workbench.records import share


def memory_bound_output(prompt, costs: Costs, about: Density = PLAIN):
    """Output tokens beyond which a request with this prompt is memory-intensive: the root of ρ = 1.

    With b KV tokens read in the time of one token computed, b (p + k p^2 + d) = p d + d^2 / 2, so
    d = b - p + sqrt((b - p)^2 + 2 b (p + k p^2)), where k is the attention of a prompt if it is counted.

    Parameters:
        prompt: prompt tokens, a number or an array.
        costs: of model and accelerator.
        about: what counts.
    """
    prompt, balance = checked(prompt, "prompt"), about.balance(costs)
    rest = balance - prompt
    return rest + np.sqrt(rest**2 + 2 * balance * (prompt + about.pair_weight(costs) * prompt**2))


def balanced_tokens(density, costs: Costs):
    """Dense batch of a step that reads the full pool and computes ρ times as long: ρ (M / bandwidth) (compute / 2 P).

    Parameters:
        density: ρ of the requests, a number or an array.
        costs: of model and accelerator, with their KV pool.
    """
    return checked(density, "density") * costs.pool_bytes / costs.memory_bytes_per_s / costs.token_s


def reordering_gain(density, memory_slope: float, compute_slope: float):
    """The most that any order can gain over one in which nothing overlaps: sum over overlapped time at a density.

    Parameters:
        density: compute over memory time of all requests, a number or an array.
        memory_slope, compute_slope: of the overlapping engine; 0 and 0 for perfect overlap.

    The largest gain lies where both branches meet, at ρ = (1 - a) / (1 - b).
    """
    density = checked(density, "density")
    share(memory_slope, "memory_slope")
    share(compute_slope, "compute_slope")
    return (density + 1.0) / overlapped_s(density, np.ones_like(density), memory_slope, compute_slope)


def largest_gain(memory_slope: float, compute_slope: float) -> tuple[float, float]:
    """The density at which reordering can gain most, and that gain.

    >>> largest_gain(0.0, 0.0), largest_gain(1 / 2, 1 / 3)
    ((1.0, 2.0), (0.75, 1.4))
    """
    if share(compute_slope, "compute_slope") == 1.0:
        raise InputError("is 1: nothing overlaps while computing", "give a slope below 1", field="compute_slope")
    meet = (1.0 - share(memory_slope, "memory_slope")) / (1.0 - compute_slope)
    return round(meet, 12), round(float(reordering_gain(meet, memory_slope, compute_slope)), 12)
