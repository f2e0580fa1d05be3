"""What the short labels of logarithmic axes say."""

PREFIXES = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3, "m": 1e-3, "µ": 1e-6, "n": 1e-9}


def value_of_tick(text: str) -> float:
    """The number that a label such as "2.5k" stands for."""
    return float(text[:-1]) * PREFIXES[text[-1]] if text[-1] in PREFIXES else float(text)
