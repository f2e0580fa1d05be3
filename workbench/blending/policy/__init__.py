"""Decisions of an offline batch: overlap, balance, memory split, admission, cuts between ranks."""

from workbench.blending.policy.balance import (
    TILE,
    balanced_batch,
    in_flight,
    lasting_split,
    memory_split,
    prefill_tokens_per_step,
    tiled,
    tiled_up,
)
from workbench.blending.policy.overlap import IDEAL, INTERFERENCE, SEQUENTIAL, SLOPES, overlapped_s, with_network_s
from workbench.blending.policy.peak import FINISH, SINCE, predicted_peak

__all__ = [
    "FINISH",
    "IDEAL",
    "INTERFERENCE",
    "SEQUENTIAL",
    "SINCE",
    "SLOPES",
    "TILE",
    "balanced_batch",
    "in_flight",
    "lasting_split",
    "memory_split",
    "overlapped_s",
    "predicted_peak",
    "prefill_tokens_per_step",
    "tiled",
    "tiled_up",
    "with_network_s",
]
