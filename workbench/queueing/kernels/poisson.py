"""Poisson probabilities that keep their digits for large means, and the mean excess over a level."""

import math

from workbench.jit import kernel


@kernel
def poisson_probability(count, mean):
    """P(N = count) for N ~ Poisson(mean), with a relative error near 1e-15 x max(1, deviation from the mean).

    Loader's form (2000): the large terms of n ln x - x - ln n! cancel on paper, not in floating point.
    """
    if mean == 0.0:
        return 1.0 if count == 0 else 0.0
    if count == 0:
        return math.exp(-mean)
    return math.exp(-_stirling_error(count) - _deviance(float(count), mean)) / math.sqrt(2.0 * math.pi * count)


@kernel
def _stirling_error(count):
    """ln n! - ln(sqrt(2πn) (n/e)^n)."""
    n = float(count)
    if count < 16:
        return math.lgamma(n + 1.0) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2.0 * math.pi)
    squared = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / (1680 * squared)) / squared) / squared) / n


@kernel
def _deviance(count, mean):
    """n ln(n/x) + x - n without cancellation near n = x."""
    if abs(count - mean) >= 0.1 * (count + mean):
        return count * math.log(count / mean) + mean - count
    ratio = (count - mean) / (count + mean)
    total = (count - mean) * ratio
    term = 2.0 * count * ratio
    order = 1
    while True:
        term *= ratio * ratio
        order += 2
        added = total + term / order
        if added == total:
            return total
        total = added


@kernel
def poisson_excess(level, mean):
    """E[(N - level)+] for N ~ Poisson(mean), level at or above the mean: a sum of positive terms."""
    term = poisson_probability(level + 1, mean)
    total = 0.0
    over = 1
    while True:
        added = total + over * term
        if added == total:
            return total
        total = added
        over += 1
        term *= mean / (level + over)


def poisson_excess_slow(level: int, mean: float) -> float:
    """The definition, term by term from logarithms, far into the tail."""
    terms = range(level + 1, level + 1 + int(50 + 40 * math.sqrt(level + mean + 1)))
    return math.fsum((n - level) * math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in terms)
