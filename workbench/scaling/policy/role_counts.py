"""How many prefill and decode instances BlitzScale's artifact wants, and what it does with those that are too many.

Source: BlitzScale's artifact, as described in notes on BlitzScale, §2.6; the quirks named there are kept.
"""

from math import ceil
from typing import NamedTuple

from workbench.records import Asked, AtLeastOne, LowerAndUpper, NotNegative, Positive, whole


class RoleLoad(Asked):
    """What the planner looks at.

    Attributes:
        waiting_tokens: prompt tokens that wait, and those of blocks on instances that load or drain.
        stored_tokens: tokens of KV on ordinary prefill instances, which are to move to decode instances.
        blocks: KV blocks used on prefill, changing and decode instances; those on prefill instances among them are
            what scales decoding ahead of time.
        prefill, decode: instances, those that load included.
    """

    waiting_tokens: NotNegative
    stored_tokens: NotNegative
    blocks: NotNegative
    prefill: AtLeastOne
    decode: AtLeastOne


class RoleRates(Asked):
    """Profiled rates and the bounds of load.

    Attributes:
        prefill_tokens_per_s: of an instance.
        migrated_tokens_per_s: KV that an instance moves.
        blocks: that an instance holds.
        prefill_bounds_s: seconds of prompts that may wait for an instance, lower and upper.
        memory_bounds: shares of the blocks that may be in use.
        migration_bounds: of the aggregate rate of moving KV. Prefill uses the upper one twice, as the artifact does.
    """

    prefill_tokens_per_s: Positive
    migrated_tokens_per_s: Positive
    blocks: AtLeastOne
    prefill_bounds_s: LowerAndUpper = (0.5, 0.7)
    memory_bounds: LowerAndUpper = (0.75, 0.95)
    migration_bounds: LowerAndUpper = (0.4, 0.8)


class Wanted(NamedTuple):
    """Changes of the two counts; positive for more instances."""

    prefill: int
    decode: int


def role_changes(
    load: RoleLoad, rates: RoleRates, most_prefill: int, most_decode: int, least_prefill: int = 1, least_decode: int = 1
) -> Wanted:
    """How many more, or fewer, instances of each role are wanted now?

    A count below its lower bound is raised to the middle of both, one above the upper bound is lowered by one. The
    migration term divides by the rate of all decode instances together, so that it is a duration and no count.

    Raises:
        InputError: more instances at least than at most.

    >>> load = RoleLoad(waiting_tokens=60_000, stored_tokens=0, blocks=0, prefill=2, decode=2)
    >>> rates = RoleRates(prefill_tokens_per_s=15_000, migrated_tokens_per_s=96_000, blocks=1000)
    >>> role_changes(load, rates, 14, 14)
    Wanted(prefill=5, decode=-1)
    """
    for role, least, most in (("prefill", least_prefill, most_prefill), ("decode", least_decode, most_decode)):
        whole(most, f"most_{role}", max(1, whole(least, f"least_{role}")))
    r, moved = rates.prefill_tokens_per_s, load.decode * rates.migrated_tokens_per_s
    (soon, late), (few, many), (slow, fast) = rates.prefill_bounds_s, rates.memory_bounds, rates.migration_bounds
    moving = ceil(load.stored_tokens / (fast * moved))
    p_low = max(ceil(load.waiting_tokens / (late * r)), moving)
    p_high = max(p_low, ceil(load.waiting_tokens / (soon * r)), moving)
    d_low = max(ceil(load.blocks / (many * rates.blocks)), moving)
    d_high = max(d_low, ceil(load.blocks / (few * rates.blocks)), ceil(load.stored_tokens / (slow * moved)))
    return Wanted(
        _change(load.prefill, p_low, p_high, max(1, least_prefill), most_prefill),
        _change(load.decode, d_low, d_high, max(1, least_decode), most_decode),
    )


def _change(count: int, low: int, high: int, least: int, most: int) -> int:
    change = (low + high + 1) // 2 - count if count < low else -1 if count > high else 0
    return min(max(count + change, least), most) - count
