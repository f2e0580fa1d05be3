"""Which chain a job joins: the head of the central line is asked for whenever a job arrives or leaves."""

from typing import Literal

from workbench.errors import UnknownName
from workbench.jit import inner_kernel, lean_kernel

Dispatch = Literal["jffc", "jsq", "sa-jsq", "sed", "jiq", "round-robin", "weighted-round-robin", "random"]
JFFC, JSQ, SA_JSQ, SED, JIQ, ROUND_ROBIN, WEIGHTED_ROUND_ROBIN, RANDOM = range(8)
POLICIES: dict[Dispatch, int] = {
    "jffc": JFFC,
    "jsq": JSQ,
    "sa-jsq": SA_JSQ,
    "sed": SED,
    "jiq": JIQ,
    "round-robin": ROUND_ROBIN,
    "weighted-round-robin": WEIGHTED_ROUND_ROBIN,
    "random": RANDOM,
}
"""Dispatch policies, with the number that kernels know each by. All but `jffc` send every job on at once."""

CHOOSES: dict[Dispatch, str] = {
    "jffc": "the fastest chain with a free slot; the job waits in the central line where there is none",
    "jsq": "the chain with fewest jobs too many over its slots, ties at random",
    "sa-jsq": "the same, ties to the fastest chain",
    "sed": "the chain with the shortest expected delay",
    "jiq": "any chain with a free slot, else any chain",
    "round-robin": "one chain after the other",
    "weighted-round-robin": "chains in turn, as often as their rates allow",
    "random": "any chain",
}
"""What each policy chooses, for tables."""


def policy_number(name: str) -> int:
    """The number of a dispatch policy, or `UnknownName`."""
    if not isinstance(name, str) or name not in POLICIES:
        raise UnknownName("dispatch policy of chains", name, POLICIES)
    return POLICIES[name]


@lean_kernel
def choose(policy, inside, slots, rate_per_s, waiting, draw, memory):
    """The chain for the job at the head of the central line, or -1 to leave it there until a job arrives or leaves.

    Parameters:
        policy: number of the policy.
        inside: int64[K], jobs queued or in service on each chain, chains in order of falling rate.
        slots: int64[K], jobs that each chain serves at once.
        rate_per_s: float64[K], rate of one slot of each.
        waiting: jobs in the central line, this one included.
        draw: float64[2], uniform numbers of this job, the same whenever it is asked for again.
        memory: float64[K], zeros at the start, for the policy to keep what it likes.

    Sources: papers' rules for single servers with capacities put in, as in the simulator of arXiv 2604.14993 (notes on
    server chains, §2.7 and §2.10).
    """
    if policy == JFFC:
        for k in range(inside.size):
            if inside[k] < slots[k]:
                return k
        return -1
    if policy == JSQ:
        return _shortest(inside, slots, draw[0])
    if policy == SA_JSQ:
        return _shortest(inside, slots, 0.0)
    if policy == SED:
        return _soonest(inside, slots, rate_per_s)
    if policy == JIQ:
        return _any_with_room(inside, slots, draw[0])
    if policy == ROUND_ROBIN:
        turn = int(memory[0])
        memory[0] = 0.0 if turn + 1 == inside.size else turn + 1.0
        return turn
    if policy == WEIGHTED_ROUND_ROBIN:
        return _heaviest_turn(slots, rate_per_s, memory)
    return int(draw[0] * inside.size)


@inner_kernel
def _excess(inside, slots):
    """Jobs that would wait on a chain with one more: (Z - c + 1)+."""
    return max(0, inside - slots + 1)


@inner_kernel
def _shortest(inside, slots, draw):
    """The chain with the smallest excess over its slots; of equal ones that at `draw` of the way, the fastest at 0."""
    least, equal = _excess(inside[0], slots[0]) / slots[0], 1
    for k in range(1, inside.size):
        value = _excess(inside[k], slots[k]) / slots[k]
        if value < least:
            least, equal = value, 1
        elif value == least:
            equal += 1
    left = int(draw * equal)
    for k in range(inside.size):
        if _excess(inside[k], slots[k]) / slots[k] == least:
            if left == 0:
                return k
            left -= 1
    return 0


@inner_kernel
def _soonest(inside, slots, rate_per_s):
    """The chain with the shortest expected delay: 1/μ + (Z - c + 1)+ / (μ c), the first of equal ones."""
    best, least = 0, 0.0
    for k in range(inside.size):
        value = 1.0 / rate_per_s[k] + _excess(inside[k], slots[k]) / (rate_per_s[k] * slots[k])
        if k == 0 or value < least:
            best, least = k, value
    return best


@inner_kernel
def _any_with_room(inside, slots, draw):
    """One of the chains with a free slot, all alike; where there is none, one of all, whatever its capacity."""
    free = 0
    for k in range(inside.size):
        if inside[k] < slots[k]:
            free += 1
    if free == 0:
        return int(draw * inside.size)
    left = int(draw * free)
    for k in range(inside.size):
        if inside[k] < slots[k]:
            if left == 0:
                return k
            left -= 1
    return 0


@inner_kernel
def _heaviest_turn(slots, rate_per_s, memory):
    """Turns in proportion to c μ, spread evenly: every chain gains its weight, the one with most pays the total."""
    total, best = 0.0, 0
    for k in range(slots.size):
        weight = slots[k] * rate_per_s[k]
        memory[k] += weight
        total += weight
        if memory[k] > memory[best]:
            best = k
    memory[best] -= total
    return best
