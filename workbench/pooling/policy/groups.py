"""Which prefill group takes a request, and which instance a new group (Algorithm 1)."""

from workbench.jit import lean_kernel
from workbench.pooling.policy.names import ACCUMULATIVE, BY_MEMORY


@lean_kernel
def has_room(rule, limit, taken, waiting, waiting_blocks, blocks, capacity):
    """Whether a group takes one more request.

    Parameters:
        rule: number of the group rule.
        limit: most requests of a group.
        taken: requests that ever joined it.
        waiting, waiting_blocks: those that have not begun, and the KV blocks of their prompts.
        blocks: of the new prompt.
        capacity: KV blocks of an instance that holds the group's model.

    Source: Aegaeon (SOSP'25) Algorithm 1, where executing a request does not make the group smaller; its artifact
    compares what waits, its simulator the KV cache.
    """
    if rule == BY_MEMORY:
        return waiting_blocks + blocks <= capacity
    return (taken if rule == ACCUMULATIVE else waiting) < limit


@lean_kernel
def least(loads, begin, end):
    """The first place from `begin` to before `end` with the smallest load."""
    best = begin
    for place in range(begin + 1, end):
        if loads[place] < loads[best]:
            best = place
    return best
