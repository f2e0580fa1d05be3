"""How long a job stays under join-the-fastest-free-chain: bounds for any number of slots, exact for few."""

import numpy as np

from workbench.chains.model.ordering import ordered
from workbench.queueing import Answer, UnequalServers, fastest_free
from workbench.queueing.checking import arrival_rate, stable
from workbench.queueing.kernels.levels import level_probabilities
from workbench.records import Record


class Bounds(Answer):
    """Bounds on the mean number inside and the mean response of join-the-fastest-free-chain (Theorem 4).

    Attributes:
        inside_lower, inside_upper: as if the n jobs inside always sat in the n fastest, or slowest, slots.
        response_lower_s, response_upper_s: the same divided by λ (Little's law).
        load: λ over the rate of all slots.
    """

    inside_lower: float
    inside_upper: float
    response_lower_s: float
    response_upper_s: float
    load: float


def bounds(rates_per_s, slots, arrival_rate_per_s: float) -> Bounds:
    """Between which values does the mean response lie under join-the-fastest-free-chain?

    Work and memory grow with the number of slots C: 100,000 take milliseconds.

    Parameters:
        rates_per_s: float[K], rate of one slot of each chain; services are exponential.
        slots: whole[K], jobs that each chain serves at once.
        arrival_rate_per_s: λ of the Poisson arrivals.

    Raises:
        Unstable: arrivals are not below the rate of all slots.

    >>> found = bounds([1.0, 0.5], [1, 1], 0.75)
    >>> round(found.response_lower_s, 6), round(found.response_upper_s, 6)
    (1.6, 2.0)
    """
    rates, counts, _ = ordered(rates_per_s, slots)
    arrivals = arrival_rate(arrival_rate_per_s)
    load = stable(f"{rates.size} chains with {counts.sum()} slots", arrivals, float(rates @ counts), "add slots")
    lower, upper = both_means(arrivals, rates, counts)
    return Bounds(
        queue=f"{rates.size} chains with {counts.sum()} slots",
        kind="bound",
        arrivals="Poisson",
        service="exponential",
        source="join the fastest free chain: arXiv 2604.14993, Theorem 4 (notes on server chains, §2.8)",
        inside_lower=lower,
        inside_upper=upper,
        response_lower_s=lower / arrivals,
        response_upper_s=upper / arrivals,
        load=load,
    )


def both_means(arrival_rate_per_s: float, rates_per_s: np.ndarray, slots: np.ndarray) -> tuple[float, float]:
    """The lower and the upper mean number inside, of chains in order of falling rate that are known to be stable."""
    return means_leaving(arrival_rate_per_s, *leaving(rates_per_s, slots))


def leaving(rates_per_s: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rates of leaving with 1 to C inside, float64[C] each: in the fastest slots, and in the slowest."""
    unit = np.repeat(rates_per_s, slots)
    return np.cumsum(unit), np.cumsum(unit[::-1])


def means_leaving(arrival_rate_per_s: float, fastest: np.ndarray, slowest: np.ndarray) -> tuple[float, float]:
    """`both_means` of rates as `leaving` gives them."""
    return _mean_inside(arrival_rate_per_s, fastest), _mean_inside(arrival_rate_per_s, slowest)


def _mean_inside(arrival_rate_per_s: float, leave_per_s: np.ndarray) -> float:
    """Mean of a birth-death chain, given the rate of leaving with 1 to C inside."""
    probability = np.empty(leave_per_s.size + 1)
    level_probabilities(arrival_rate_per_s, leave_per_s, True, probability)
    beyond = probability[-1] * arrival_rate_per_s / (leave_per_s[-1] - arrival_rate_per_s)
    return float((np.arange(float(probability.size)) * probability).sum() + beyond)


def exact(rates_per_s, slots, arrival_rate_per_s: float) -> UnequalServers:
    """How long do jobs wait and stay under join-the-fastest-free-chain, exactly?

    One state for each combination of busy slots, solved as a sparse linear system (see
    `workbench.queueing.fastest_free`, whose classes are chains here); `in_fractions` does without rounding.

    Parameters:
        rates_per_s, slots, arrival_rate_per_s: as in `bounds`.

    Raises:
        UserError: there are more states than can be solved in seconds; take `bounds` or a simulation.
        Unstable: arrivals are not below the rate of all slots.

    >>> round(exact([1.0, 0.5], [2, 3], 1.5).mean_response_s, 6)
    1.324803
    """
    return fastest_free(arrival_rate_per_s, rates_per_s, slots)


class Reference(Record):
    """A curve of Theorem 4 drawn where its assumptions do not hold.

    Attributes:
        label: what a legend must say.
        response_lower_s, response_upper_s: what the theorem gives for Poisson arrivals and exponential sizes.
    """

    label: str
    response_lower_s: float
    response_upper_s: float


def reference(rates_per_s, slots, arrival_rate_per_s: float) -> Reference:
    """What Theorem 4 gives at this rate, to be drawn beside other arrivals or sizes: a reference, no bound there."""
    found = bounds(rates_per_s, slots, arrival_rate_per_s)
    return Reference(
        label="Poisson/exp reference",
        response_lower_s=found.response_lower_s,
        response_upper_s=found.response_upper_s,
    )
