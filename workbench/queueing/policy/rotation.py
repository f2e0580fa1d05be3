"""Round robin over queues: which queue is next, and how many are served on one visit."""

import math
from typing import Literal

from workbench.errors import UnknownName
from workbench.jit import kernel

Discipline = Literal["exhaustive", "gated", "one-limited"]
DISCIPLINES: dict[Discipline, int] = {"exhaustive": 0, "gated": 1, "one-limited": 2}
"""When the server leaves a queue, with the number that kernels know it by."""

_NO_LIMIT = 2**62


def check_discipline(name: str) -> int:
    """The number of a discipline, or `UnknownName`."""
    if not isinstance(name, str) or name not in DISCIPLINES:
        raise UnknownName("polling discipline", name if isinstance(name, str) else type(name).__name__, DISCIPLINES)
    return DISCIPLINES[name]


@kernel
def allowance(discipline, waiting):
    """How many customers may be served on a visit that finds `waiting` of them: no limit, those found, or one."""
    if discipline == 0:
        return _NO_LIMIT
    if discipline == 1:
        return waiting
    return 1


@kernel
def next_queue(queue, queues):
    """The queue after this one, in a circle."""
    return queue + 1 if queue + 1 < queues else 0


@kernel
def idle_walk(now_s, here, walk, until_s, queues, switch_s):
    """Where a server that finds nobody stands at its first arrival at a queue at or after `until_s`.

    Parameters:
        now_s, here, walk: instant, queue, and place in `switch_s` of the next walk.
        until_s: when the next customer arrives anywhere.
        queues: how many.
        switch_s: float64[m], times of the walks, used over and over.

    Whole tours, after which queue and walk are the same again, are added at once: idle time costs nothing however short
    the walks are. Walks too short to move a clock, or of no time, let the server stand still until then.
    """
    round_s = 0.0
    for place in range(switch_s.size):
        round_s += switch_s[place]
    tour_s = queues * round_s
    if now_s + tour_s == now_s or until_s + tour_s == until_s:
        return max(now_s, until_s), here, walk
    if now_s < until_s:
        now_s += math.floor((until_s - now_s) / tour_s) * tour_s
    while now_s < until_s:
        now_s += switch_s[walk]
        walk = walk + 1 if walk + 1 < switch_s.size else 0
        here = next_queue(here, queues)
    return now_s, here, walk
