"""Loads of weights: completed, begun again when all sources have failed."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.beginning import begin_loads, look_up, sources_of
from workbench.serving.kernels.handing_over import hand_out_and_on
from workbench.serving.kernels.host_cache import enter, models_of, touch
from workbench.serving.kernels.layout import BEGIN, BEHIND, MODEL
from workbench.serving.kernels.piping import break_lanes, switch
from workbench.serving.kernels.rows import change, is_loading
from workbench.serving.kernels.scaled_layout import (
    CONTROL_S,
    FORMS_S,
    FROM_HOSTS,
    HOST_OF,
    LOAD,
    LOADED_AT,
    LOADS,
    MODEL_OF,
    OPERATION,
    OPERATIONS,
    PIPED,
    READY_S,
    ROW_STATE,
    SEEN_S,
    SSD_END_S,
    STARTING,
    TARGETS,
    TIER,
    UP_STATE,
    WEIGHT_BYTES,
)
from workbench.serving.kernels.sending import leave_operation
from workbench.serving.kernels.ssd import begin_read, end_read
from workbench.serving.policy.scalers import (
    DRAM_TIER,
    MULTICAST_TIER,
)


@inner_kernel
def come_up(state, scaled, router, chooser, j, now_s):
    """A row has its weights: it is up, and the router hands out. False if the policy chose what was not offered."""
    row = scaled.rows[j]
    _switch_if_piped(state, scaled, scaled.links, j, now_s)
    leave_operation(scaled, scaled.links, j, now_s)
    change(state, scaled, j, UP_STATE, now_s)
    scaled.times[j, READY_S] = scaled.times[j, FORMS_S] = np.inf
    row[LOADED_AT] = scaled.counts[OPERATIONS]
    scaled.logs[LOADS, row[LOAD], 1] = now_s
    if row[TIER] == DRAM_TIER:
        touch(scaled, row[HOST_OF], row[MODEL_OF], now_s)
    return hand_out_and_on(state, router, scaled.links, chooser, state.instances[j, MODEL], now_s)


@inner_kernel
def _switch_if_piped(state, scaled, links, j, now_s):
    """A member of a pipeline goes on by itself; over links of KV there are none."""
    if links is not None:
        return
    if scaled.rows[j, ROW_STATE] == PIPED:
        switch(state, scaled, j, now_s)


@inner_kernel
def complete(state, scaled, router, chooser, now_s):
    """End the reads that are due, begin those that are seen to be needed, and let rows that are ready come up.

    False if the policy chose wrongly.
    """
    for h in range(scaled.hosts.shape[0]):
        while scaled.hosts[h, SSD_END_S] <= now_s:
            j = end_read(scaled, h, now_s)
            scaled.times[j, READY_S] = now_s + scaled.reals[state.instances[j, MODEL], CONTROL_S]
            enter(scaled, h, scaled.rows[j, MODEL_OF], now_s)
    for j in range(scaled.rows.shape[0]):
        if scaled.times[j, SEEN_S] <= now_s:
            scaled.times[j, SEEN_S] = np.inf
            begin_read(scaled, scaled.rows[j, HOST_OF], j, scaled.reals[state.instances[j, MODEL], WEIGHT_BYTES], now_s)
        ready = is_loading(scaled.rows[j]) and scaled.times[j, READY_S] <= now_s
        if ready and not come_up(state, scaled, router, chooser, j, now_s):
            return False
    return True


@inner_kernel
def begin_again(state, scaled, router, chooser, m, now_s):
    """Begin the loads of multicasts of a model anew that have lost all their sources, operation by operation.

    False if the policy chose what was not offered.
    """
    while True:
        orphan, group = orphan_of(scaled, router, m, np.int64(-1), scaled.counts[OPERATIONS])
        if orphan < 0:
            return True
        if not break_lanes(state, scaled, router, chooser, group, orphan, np.int64(-1), now_s):
            return False
        look_up(scaled, m, now_s)
        begin_loads(scaled, router, group, targets_of(scaled, router, group, orphan), now_s)


@inner_kernel
def orphan_of(scaled, router, m, after, before):
    """The first multicast of a model with a number between two that has no source left; and the group that it is for.

    -1 for none.
    """
    orphan, group = np.int64(-1), m
    for line in range(m, router.lines.shape[0], models_of(scaled)):
        for k in range(router.lines[line, BEGIN], router.lines[line, BEHIND]):
            row = scaled.rows[router.members[k]]
            loading = is_loading(row) and row[TIER] == MULTICAST_TIER and row[FROM_HOSTS] == 0
            earlier = after < row[OPERATION] < (before if orphan < 0 else orphan)
            if loading and earlier and sources_of(scaled, router, m, row[OPERATION]) == 0:
                orphan, group = row[OPERATION], line
    return orphan, group


@inner_kernel
def targets_of(scaled, router, m, operation):
    """Fill the targets with the rows that an operation still has to load, in its order; how many there are."""
    count = 0
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        row = scaled.rows[j]
        if row[ROW_STATE] == STARTING and row[OPERATION] == operation:
            place = count
            while place > 0 and scaled.rows[scaled.lists[TARGETS, place - 1], LOAD] > row[LOAD]:
                scaled.lists[TARGETS, place] = scaled.lists[TARGETS, place - 1]
                place -= 1
            scaled.lists[TARGETS, place] = j
            count += 1
    return count
