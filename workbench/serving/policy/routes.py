"""Dispatch policies by number, as compiled loops take them, and by name, as people do."""

ROUND_ROBIN, LEAST_OUTSTANDING, RANDOM, LEAST_TOKENS, TWO_CHOICES, FIRST_FREE = range(6)

ROUTES = {
    "round-robin": ROUND_ROBIN,
    "least-outstanding": LEAST_OUTSTANDING,
    "random": RANDOM,
    "least-tokens": LEAST_TOKENS,
    "two-choices": TWO_CHOICES,
    "first-free": FIRST_FREE,
}
"""Name -> number."""
