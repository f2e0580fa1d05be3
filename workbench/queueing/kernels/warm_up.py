"""The marginal standard error rule of warm-up deletion."""

from workbench.jit import kernel


@kernel
def marginal_errors(series, error):
    """Fill float64[m] with sum of (x - mean)^2 over count^2 of series[d:], d = 0 to m-1.

    From the end backwards, mean and squares carried along (Welford), so that no large sums are subtracted.
    """
    mean, squares = 0.0, 0.0
    for place in range(series.size - 1, -1, -1):
        count = series.size - place
        apart = series[place] - mean
        mean += apart / count
        squares += apart * (series[place] - mean)
        if place < error.size:
            error[place] = squares / count**2


def marginal_errors_slow(series, count):
    """The definition, start by start."""
    errors = []
    for first in range(count):
        rest = series[first:]
        mean = sum(rest) / len(rest)
        errors.append(sum((value - mean) ** 2 for value in rest) / len(rest) ** 2)
    return errors
