"""Who is let in: a request that arrives is turned away where promises to it or to others could not be kept."""

import math

import numpy as np

from workbench.jit import inner_kernel
from workbench.pooling.kernels.estimating import by_estimates
from workbench.pooling.kernels.events import due, happen
from workbench.pooling.kernels.layout import (
    BELIEVED,
    FLOWS,
    GROUPS_USED,
    INSIDE_NOW,
    MADE,
    MISSES,
    MODEL,
    OUTPUT,
    PROMPT,
    QUIET,
    REFUSED,
    REJECTED,
    RESERVED,
    STATUS,
)
from workbench.pooling.kernels.prefilling import give_up, line_up
from workbench.pooling.policy.memory import AHEAD_TO_RUN, blocks_of
from workbench.pooling.policy.names import BY_ESTIMATES, LOOK_AHEAD


@inner_kernel
def arrive(s, ahead, r, now):
    """A request comes: it is lined up, or turned away."""
    give_up(s, now)
    row = s.requests[r]
    model = row[MODEL]
    home, owner = s.models.home[model], s.models.owner[model]
    row[RESERVED] = blocks_of(row[PROMPT] + thought(s, r), s.rules.block_tokens)
    size = row[RESERVED] * s.models.block_bytes[model]
    if (
        row[REFUSED] == 1
        or blocks_of(row[PROMPT] + row[OUTPUT] + AHEAD_TO_RUN, s.rules.block_tokens) > s.models.capacity[model]
        or s.reserved[home] + size > s.pool.kv_bytes
        or (s.shared[INSIDE_NOW] >= s.rules.owner_from and s.owners[owner] >= s.models.owner_most[owner])
        or (s.rules.admission == LOOK_AHEAD and not keeps_all(s, ahead, r, now))
        or (s.rules.admission == BY_ESTIMATES and not by_estimates(s, r, now))
    ):
        row[STATUS] = REJECTED
        return
    s.shared[INSIDE_NOW] += 1
    s.owners[owner] += 1
    s.reserved[home] += size
    line_up(s, r, now)


@inner_kernel
def thought(s, r):
    """Output tokens that a request is thought to have, at least one more than it has."""
    return max(s.requests[r, MADE] + 1, math.ceil(s.rules.margin * s.requests[r, BELIEVED]))


@inner_kernel
def keeps_all(s, ahead, r, now):
    """Whether nobody misses a promise that is still kept, if this request is admitted and nobody comes after it."""
    copy_rows(ahead.requests, s.requests, r + 1)
    copy_rows(ahead.moments, s.moments, r + 1)
    for row in range(r + 1):
        ahead.requests[row, OUTPUT] = thought(s, row)
    copy_rows(ahead.groups, s.groups, s.shared[GROUPS_USED])
    copy_rows(ahead.batches, s.batches, s.batches.shape[0])
    copy_rows(ahead.instances, s.instances, s.instances.shape[0])
    copy_rows(ahead.reals, s.reals, s.reals.shape[0])
    copy_rows(ahead.times, s.times, s.times.shape[0])
    for i in range(s.flows.shape[0]):
        copy_rows(ahead.flows[i], s.flows[i], FLOWS)
    copy_rows(ahead.held, s.held, s.held.shape[0])
    copy_rows(ahead.held_s, s.held_s, s.held.shape[0])
    copy(ahead.held_bytes, s.held_bytes)
    copy(ahead.quotas, s.quotas)
    copy(ahead.shared, s.shared)
    copy(ahead.spare, s.spare)
    copy(ahead.owners, s.owners)
    copy(ahead.reserved, s.reserved)
    ahead.shared[QUIET], ahead.shared[MISSES] = 1, 0
    line_up(ahead, r, now)
    while ahead.shared[MISSES] == 0:
        time_s, kind, who, shared_s = due(ahead)
        if time_s == np.inf:
            return True
        happen(ahead, time_s, kind, who, shared_s)
    return False


@inner_kernel
def copy_rows(into, source, rows):
    """Copy the first rows; an assignment of slices would make an array in between."""
    for row in range(rows):
        copy(into[row], source[row])


@inner_kernel
def copy(into, source):
    """Copy an array of one dimension."""
    for k in range(source.size):
        into[k] = source[k]
