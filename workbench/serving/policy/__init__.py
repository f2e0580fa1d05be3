"""Decisions of a serving cluster: which instance a request goes to, and how many instances there should be."""

from workbench.serving.policy.functions import chooser
from workbench.serving.policy.helping import helped_s, ready_layers, worth_helping, would_break
from workbench.serving.policy.routes import (
    FIRST_FREE,
    LEAST_OUTSTANDING,
    LEAST_TOKENS,
    RANDOM,
    ROUND_ROBIN,
    ROUTES,
    TWO_CHOICES,
)
from workbench.serving.policy.scalers import SCALERS, SOURCES
from workbench.serving.policy.scaling import decide, decide_role

__all__ = [
    "FIRST_FREE",
    "LEAST_OUTSTANDING",
    "LEAST_TOKENS",
    "RANDOM",
    "ROUND_ROBIN",
    "ROUTES",
    "SCALERS",
    "SOURCES",
    "TWO_CHOICES",
    "chooser",
    "decide",
    "decide_role",
    "helped_s",
    "ready_layers",
    "worth_helping",
    "would_break",
]
