"""Decisions of a serving cluster: which instance a request goes to."""

from workbench.serving.policy.functions import chooser
from workbench.serving.policy.routes import (
    FIRST_FREE,
    LEAST_OUTSTANDING,
    LEAST_TOKENS,
    RANDOM,
    ROUND_ROBIN,
    ROUTES,
    TWO_CHOICES,
)

__all__ = [
    "FIRST_FREE",
    "LEAST_OUTSTANDING",
    "LEAST_TOKENS",
    "RANDOM",
    "ROUND_ROBIN",
    "ROUTES",
    "TWO_CHOICES",
    "chooser",
]
