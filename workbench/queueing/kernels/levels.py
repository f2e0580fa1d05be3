"""Birth-death chains: how likely each number in the system is."""

import math
from fractions import Fraction

from workbench.jit import kernel


@kernel
def level_probabilities(arrival_rate_per_s, leave_rate_per_s, endless, probability):
    """Fill float64[m+1] with P(n in the system) for n = 0 to m, given the rate of leaving with 1 to m inside.

    Arrivals come at one rate on every level. With `endless` the levels go on past m, all leaving at the last rate; the
    last entry then holds P(m or more). Leaving rates must not fall with n, so that the probabilities have one peak; all
    others follow from it by factors of at most 1, which neither overflow nor cancel.
    """
    last = leave_rate_per_s.size
    peak = 0
    while peak < last and leave_rate_per_s[peak] <= arrival_rate_per_s:
        peak += 1
    probability[peak] = 1.0
    for level in range(peak, last):
        probability[level + 1] = probability[level] * (arrival_rate_per_s / leave_rate_per_s[level])
    for level in range(peak, 0, -1):
        probability[level - 1] = probability[level] * (leave_rate_per_s[level - 1] / arrival_rate_per_s)
    if endless:
        probability[last] /= (leave_rate_per_s[last - 1] - arrival_rate_per_s) / leave_rate_per_s[last - 1]
    total = 0.0
    for level in range(last + 1):
        total += probability[level]
    for level in range(last + 1):
        probability[level] /= total


def level_probabilities_slow(
    arrival_rate_per_s: Fraction, leave_rate_per_s: list[Fraction], endless: bool
) -> list[Fraction]:
    """The balance of neighbours in exact fractions: λ p(n-1) = d(n) p(n), then divided by the sum."""
    weights = [Fraction(1)]
    for rate in leave_rate_per_s:
        weights.append(weights[-1] * arrival_rate_per_s / rate)
    if endless:
        weights[-1] /= 1 - arrival_rate_per_s / leave_rate_per_s[-1]
    return [weight / sum(weights) for weight in weights]


def mean_above(probabilities, floor: int) -> float:
    """Mean of (number in the system - floor)+ over the levels of an array, by a sum that keeps small terms."""
    return math.fsum((level - floor) * p for level, p in enumerate(probabilities) if level > floor)
