"""How many of many independent things hold at once."""

from fractions import Fraction

from workbench.jit import kernel


@kernel
def count_probabilities(probability, count_probability):
    """Fill float64[m+1] with P(k of m hold) for m independent events of unequal probability (Poisson binomial).

    One event at a time; both ends are cut where they fall below 1e-300, so many events cost m times their spread.
    """
    count_probability[:] = 0.0
    count_probability[0] = 1.0
    low, high = 0, 0
    for event in range(probability.size):
        holds = probability[event]
        high += 1
        for count in range(high, low, -1):
            count_probability[count] = count_probability[count] * (1.0 - holds) + count_probability[count - 1] * holds
        count_probability[low] *= 1.0 - holds
        while low < high and count_probability[low] < 1e-300:
            count_probability[low] = 0.0
            low += 1
        while high > low and count_probability[high] < 1e-300:
            count_probability[high] = 0.0
            high -= 1


def count_probabilities_slow(probability: list[Fraction]) -> list[Fraction]:
    """The product of the polynomials (1 - p) + p z in exact fractions."""
    coefficients = [Fraction(1)]
    for holds in probability:
        shifted = [Fraction(0), *(c * holds for c in coefficients)]
        kept = [*(c * (1 - holds) for c in coefficients), Fraction(0)]
        coefficients = [a + b for a, b in zip(shifted, kept, strict=True)]
    return coefficients
