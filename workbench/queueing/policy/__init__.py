"""The two decisions a waiting line knows: which free server takes a job, and when the server walks on."""

from workbench.queueing.policy.dispatch import fastest_first, pick_fastest_free
from workbench.queueing.policy.rotation import (
    DISCIPLINES,
    Discipline,
    allowance,
    check_discipline,
    idle_walk,
    next_queue,
)

__all__ = [
    "DISCIPLINES",
    "Discipline",
    "allowance",
    "check_discipline",
    "fastest_first",
    "idle_walk",
    "next_queue",
    "pick_fastest_free",
]
