"""Where a logarithmic axis has its ticks, and how their numbers are written.

Plotly writes the ticks between two powers of ten as a bare first digit: 10, 2, 5, 100 reads as if it went down again.
"""

import math

STEPS = ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,))
"""Ticks of a decade, from many to few."""
FEWEST, MOST = 3, 9
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers from `low` to `high` (both above 0): 1, 2, 5 of each decade, fewer where there are many decades.

    Where fewer than three would fall between, they stand at equal distances instead.

    >>> log_ticks(2, 64)
    [2.0, 5.0, 10.0, 20.0, 50.0]
    >>> log_ticks(1.25, 1.6)
    [1.3, 1.4, 1.5, 1.6]
    """
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    for steps in STEPS:
        found = [float(f"{step:g}e{decade}") for decade in decades for step in steps]
        found = [tick for tick in found if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(found) <= MOST:
            break
    return found if len(found) >= FEWEST else _even_ticks(low, high)


def _even_ticks(low: float, high: float) -> list[float]:
    if high <= low:
        return [low]
    rough = (high - low) / 4
    decade = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * decade for factor in (1, 2, 5, 10) if factor * decade >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def short(number: float) -> str:
    """A number as an axis writes it, with an SI prefix from 1000 on and below 0.001.

    >>> [short(number) for number in (0.02, 5, 100, 2000, 1e6, 5e-6)]
    ['0.02', '5', '100', '2k', '1M', '5µ']
    """
    if number == 0 or 1e-3 <= abs(number) < 1e3:
        return f"{number:.6g}"
    size, prefix = next((one for one in _PREFIXES if abs(number) >= one[0] * (1 - 1e-9)), _PREFIXES[-1])
    return f"{number / size:.6g}{prefix}"
