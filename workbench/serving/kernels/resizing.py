"""What a decision does: rows come back, start, displace idle ones, or are drained."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.beginning import begin_loads, look_up
from workbench.serving.kernels.changing_roles import change_roles, take_busy
from workbench.serving.kernels.handing_over import hand_out_and_on
from workbench.serving.kernels.host_cache import models_of
from workbench.serving.kernels.layout import BEGIN, BEHIND, BLOCKS, FREE, OUTSTANDING
from workbench.serving.kernels.loading import come_up
from workbench.serving.kernels.rows import change, drain, is_source, leave
from workbench.serving.kernels.sampling import count_changing, count_rows
from workbench.serving.kernels.scaled_layout import (
    CHANGES,
    DOWN_STEP,
    DRAINING,
    EMPTY,
    HITS,
    HOST_OF,
    MODEL_OF,
    OCCUPANT,
    OLD,
    PLACE_OF,
    READY_S,
    ROW_STATE,
    STARTING,
    TARGETS,
    UP_STATE,
    WARM,
    WARM_SINCE_S,
)


@inner_kernel
def grow(state, scaled, router, chooser, m, need, now_s):
    """Bring so many more rows of a model up or on their way, or as many as there are. False for a wrong choice."""
    while need > 0:
        j = _one_to_revive(state, scaled, router, m)
        if j < 0:
            break
        change(state, scaled, j, UP_STATE, now_s)
        if not hand_out_and_on(state, router, scaled.links, chooser, m, now_s):
            return False
        need -= 1
    changed, right = change_roles(state, scaled, router, scaled.links, chooser, m, need, now_s)
    need -= changed
    if need == 0 or not right:
        return right
    taken, replaced, right = take_busy(state, scaled, router, scaled.links, chooser, m, need, now_s)
    if not right:
        return False
    if replaced > 0 and not _start(state, scaled, router, chooser, m % models_of(scaled), replaced, now_s):
        return False
    return taken == need or _start(state, scaled, router, chooser, m, need - taken, now_s)


@inner_kernel
def _start(state, scaled, router, chooser, m, need, now_s):
    """Start so many rows of a model, or as many as there is room for, whose weights have to come. False for a wrong
    choice."""
    look_up(scaled, m, now_s)
    count = np.int64(0)
    for hit in range(1, -1, -1):
        for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
            j = router.members[k]
            row = scaled.rows[j]
            free = row[ROW_STATE] == EMPTY and scaled.lists[OCCUPANT, row[PLACE_OF]] < 0
            if free and count < need and scaled.lists[HITS, row[HOST_OF]] == hit:
                count = _choose(state, scaled, j, count, now_s)
    while count < need:
        j = _one_to_displace(state, scaled, router, m)
        if j < 0:
            break
        leave(state, scaled, scaled.lists[OCCUPANT, scaled.rows[j, PLACE_OF]], now_s)
        count = _choose(state, scaled, j, count, now_s)
    if count == 0:
        return True
    begin_loads(scaled, router, m, count, now_s)
    for i in range(count):
        j = scaled.lists[TARGETS, i]
        if scaled.times[j, READY_S] <= now_s and not come_up(state, scaled, router, chooser, j, now_s):
            return False
    return True


@inner_kernel
def _one_to_revive(state, scaled, router, m):
    """The draining row with the fewest blocks in use, else the first warm one; -1 for none."""
    best, fewest = np.int64(-1), np.int64(0)
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        blocks = state.instances[j, BLOCKS] - state.instances[j, FREE]
        able = scaled.rows[j, ROW_STATE] == DRAINING and scaled.rows[j, CHANGES] == 0 and scaled.rows[j, OLD] == 0
        if able and (best < 0 or blocks < fewest):
            best, fewest = j, blocks
    if best >= 0:
        return best
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        if scaled.rows[router.members[k], ROW_STATE] == WARM:
            return router.members[k]
    return best


@inner_kernel
def _choose(state, scaled, j, count, now_s):
    """Make a row the next target."""
    change(state, scaled, j, STARTING, now_s)
    scaled.lists[OCCUPANT, scaled.rows[j, PLACE_OF]] = j
    scaled.lists[TARGETS, count] = j
    return count + 1


@inner_kernel
def _one_to_displace(state, scaled, router, m):
    """A row of the model whose place has been warm for another model the longest; -1 for none."""
    best, victim = np.int64(-1), np.int64(-1)
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        other = scaled.lists[OCCUPANT, scaled.rows[j, PLACE_OF]]
        if other < 0 or scaled.rows[other, ROW_STATE] != WARM:
            continue
        if scaled.rows[other, MODEL_OF] == scaled.rows[j, MODEL_OF]:
            continue
        since_s = scaled.times[other, WARM_SINCE_S]
        if victim >= 0:
            best_s = scaled.times[victim, WARM_SINCE_S]
            if since_s > best_s or (since_s == best_s and other > victim):
                continue
        if not is_source(scaled, router, other):
            best, victim = j, other
    return best


@inner_kernel
def shrink(state, scaled, router, m, surplus, now_s):
    """Drain rows of a model that are up, those with the fewest requests first, of these the last one; not the last one
    to which rows that are to follow it send their KV."""
    kept = 1 if count_changing(scaled, router, scaled.links, m) > 0 else 0
    most = count_rows(scaled.rows, router, m, UP_STATE) - kept
    for _ in range(min(surplus, scaled.models[m, DOWN_STEP], most)):
        best = np.int64(-1)
        for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
            j = router.members[k]
            if scaled.rows[j, ROW_STATE] == UP_STATE and (
                best < 0 or state.instances[j, OUTSTANDING] <= state.instances[best, OUTSTANDING]
            ):
                best = j
        drain(state, scaled, router, best, now_s)
