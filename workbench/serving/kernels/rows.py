"""Changes of a row's state, each written down."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.host_cache import make_room, models_of, touch
from workbench.serving.kernels.layout import BEGIN, BEHIND, FINISHING, IS_UP, MODEL, STAYING, UP, WEIGHTS
from workbench.serving.kernels.leaving import is_idle
from workbench.serving.kernels.prefix_cache import empty_cache
from workbench.serving.kernels.scaled_layout import (
    CHANGES,
    DEAD,
    DRAINING,
    DRAINING_ROWS,
    EMPTY,
    HOST_OF,
    KEEP_S,
    LATEST_OF,
    LOAD,
    LOADED_AT,
    LOADS,
    LOADS_USED,
    MODEL_OF,
    OCCUPANT,
    OLD,
    OPERATION,
    OPERATIONS,
    PIPED,
    PLACE_OF,
    ROW_STATE,
    SEEN_S,
    STARTING,
    STATES,
    STATES_USED,
    TIER,
    UP_STATE,
    USES,
    WARM,
    WARM_SINCE_S,
)
from workbench.serving.policy.scalers import MULTICAST_TIER


@inner_kernel
def change(state, scaled, j, new, now_s):
    """Give a row a new state and log it."""
    row, entry = scaled.rows[j], scaled.counts[STATES_USED]
    log = scaled.logs[STATES, entry]
    log[0], log[1], log[2] = now_s, j, new
    scaled.counts[STATES_USED] = entry + 1
    if row[ROW_STATE] == DRAINING:
        scaled.counts[DRAINING_ROWS] -= 1
    if new == DRAINING:
        scaled.counts[DRAINING_ROWS] += 1
    row[ROW_STATE], row[CHANGES] = new, 0
    state.instances[j, STAYING] = 0
    if row[ROW_STATE] == EMPTY or row[ROW_STATE] == DEAD:
        empty_cache(state.cells, state.instances[j])
        scaled.times[j, SEEN_S] = np.inf
    state.instances[j, UP] = 0
    if row[ROW_STATE] == UP_STATE or row[ROW_STATE] == PIPED:
        state.instances[j, UP], state.instances[j, WEIGHTS] = IS_UP, scaled.models[row[MODEL_OF], LATEST_OF]
    elif row[ROW_STATE] == STARTING:
        row[OLD] = 0
    elif row[ROW_STATE] == DRAINING and row[OLD] == 1:
        state.instances[j, UP] = FINISHING


@inner_kernel
def is_loading(row):
    """Whether the weights of a row are on their way."""
    return row[ROW_STATE] == STARTING or row[ROW_STATE] == PIPED


@inner_kernel
def log_load(scaled, j, senders, now_s):
    """A load of the operation that is next begins: write it down."""
    row, entry = scaled.rows[j], scaled.counts[LOADS_USED]
    row[LOAD], row[OPERATION] = entry, scaled.counts[OPERATIONS]
    log = scaled.logs[LOADS, entry]
    log[0], log[1], log[2], log[3] = now_s, np.nan, j, row[TIER]
    log[4], log[5], log[6], log[7], log[8] = senders, row[OPERATION], np.nan, 0.0, np.nan
    log[9] = scaled.models[row[MODEL_OF], LATEST_OF]
    scaled.counts[LOADS_USED] = entry + 1


@inner_kernel
def has_weights(row):
    """Whether a row has all its weights, of the newest version."""
    has = row[ROW_STATE] == UP_STATE or row[ROW_STATE] == DRAINING or row[ROW_STATE] == WARM
    return has and row[OLD] == 0


@inner_kernel
def leave(state, scaled, j, now_s):
    """A warm row becomes empty."""
    h, m = scaled.rows[j, HOST_OF], scaled.rows[j, MODEL_OF]
    change(state, scaled, j, EMPTY, now_s)
    scaled.lists[OCCUPANT, scaled.rows[j, PLACE_OF]] = -1
    if scaled.rows[j, OLD] == 0:
        touch(scaled, h, m, now_s)
    make_room(scaled, h, now_s)


@inner_kernel
def newest_operation(scaled, router, m):
    """The last multicast of a model that still runs, -1 for none: rows loaded before it are its sources."""
    newest = np.int64(-1)
    for line in range(m, router.lines.shape[0], models_of(scaled)):
        for k in range(router.lines[line, BEGIN], router.lines[line, BEHIND]):
            row = scaled.rows[router.members[k]]
            if is_loading(row) and row[TIER] == MULTICAST_TIER:
                newest = max(newest, row[OPERATION])
    return newest


@inner_kernel
def is_source(scaled, router, j):
    """Whether an operation that still runs takes weights from a row."""
    row = scaled.rows[j]
    return row[USES] > 0 or row[LOADED_AT] <= newest_operation(scaled, router, row[MODEL_OF])


@inner_kernel
def become_warm(state, scaled, router, j, now_s):
    """A row that has nothing left to do stays with its weights, for as long as they are kept."""
    change(state, scaled, j, WARM, now_s)
    scaled.times[j, WARM_SINCE_S] = now_s
    if warm_until_s(state, scaled, j) <= now_s and not is_source(scaled, router, j):
        leave(state, scaled, j, now_s)


@inner_kernel
def drain(state, scaled, router, j, now_s):
    """A row takes no more requests; without any work it is warm."""
    if is_idle(state.instances[j]):
        become_warm(state, scaled, router, j, now_s)
    else:
        change(state, scaled, j, DRAINING, now_s)


@inner_kernel
def warm_until_s(state, scaled, j):
    """When the time of a warm row is over: with weights of which there is a newer version it is."""
    kept_s = 0.0 if scaled.rows[j, OLD] == 1 else scaled.reals[state.instances[j, MODEL], KEEP_S]
    return scaled.times[j, WARM_SINCE_S] + kept_s


@inner_kernel
def expire(state, scaled, router, now_s):
    """Warm rows whose time is over become empty, unless they are in use as sources."""
    for j in range(scaled.rows.shape[0]):
        over = scaled.rows[j, ROW_STATE] == WARM and warm_until_s(state, scaled, j) <= now_s
        if over and not is_source(scaled, router, j):
            leave(state, scaled, j, now_s)
