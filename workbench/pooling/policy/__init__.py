"""Decisions of a pool: groups of prompts, quotas of turns, memory, transfers, slabs."""

from workbench.pooling.policy.bump import BumpAllocator
from workbench.pooling.policy.groups import has_room, least
from workbench.pooling.policy.memory import (
    AHEAD_TO_JOIN,
    AHEAD_TO_RUN,
    blocks_of,
    capacity_of,
    may_prefetch,
)
from workbench.pooling.policy.moving import fill_shares, may_come
from workbench.pooling.policy.names import ADMISSIONS, CLOCKS, GROUP_RULES, LOAD_RULES, PREFETCHES, SYSTEMS
from workbench.pooling.policy.quota import fill_quotas, pace_of
from workbench.pooling.policy.slabs import SlabPool
from workbench.pooling.policy.steps import decode_step_s, prompt_s
from workbench.pooling.policy.wholes import RUN, place_run

__all__ = [
    "ADMISSIONS",
    "AHEAD_TO_JOIN",
    "AHEAD_TO_RUN",
    "CLOCKS",
    "GROUP_RULES",
    "LOAD_RULES",
    "PREFETCHES",
    "RUN",
    "SYSTEMS",
    "BumpAllocator",
    "SlabPool",
    "blocks_of",
    "capacity_of",
    "decode_step_s",
    "fill_quotas",
    "fill_shares",
    "has_room",
    "least",
    "may_come",
    "may_prefetch",
    "pace_of",
    "place_run",
    "prompt_s",
]
