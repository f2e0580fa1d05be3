"""New versions of weights: rows with older ones finish what they have and leave, what is on its way begins again."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.beginning import begin_loads, look_up
from workbench.serving.kernels.handing_over import hand_out_and_on, send_what_stayed
from workbench.serving.kernels.host_cache import forget, models_of
from workbench.serving.kernels.layout import FINISHING, LARGE, LATEST, MODEL, UP
from workbench.serving.kernels.loading import targets_of
from workbench.serving.kernels.piping import break_lanes
from workbench.serving.kernels.rows import drain, has_weights, is_loading, is_source, leave
from workbench.serving.kernels.scaled_layout import (
    CHANGES,
    DRAINING,
    HOST_OF,
    LATEST_OF,
    LOADED_AT,
    MODEL_OF,
    OLD,
    ON_SSD,
    OPERATION,
    OPERATION_AT,
    OPERATIONS,
    ROW_STATE,
    SEEN_S,
    TIER,
    UP_STATE,
    UPDATE_OF,
    UPDATED,
    WARM,
)
from workbench.serving.kernels.sending import end_operation
from workbench.serving.kernels.ssd import drop_read
from workbench.serving.policy.scalers import CHAIN_TIER, NEAR_TIER


@inner_kernel
def update(state, router, scaled, chooser, now_s):
    """The next new version is there. False if the policy chose what was not offered."""
    m = np.int64(scaled.updates[scaled.counts[UPDATED], UPDATE_OF])
    scaled.counts[UPDATED] += 1
    for h in range(scaled.hosts.shape[0]):
        forget(scaled, h, m, now_s)
    scaled.models[m, LATEST_OF] += 1
    for line in range(m, router.lines.shape[0], models_of(scaled)):
        router.lines[line, LATEST] = scaled.models[m, LATEST_OF]
    _drain_old(state, scaled, router, m, now_s)
    if not _begin_again(state, scaled, router, chooser, m, now_s):
        return False
    return hand_out_and_on(state, router, scaled.links, chooser, m, now_s)


@inner_kernel
def _drain_old(state, scaled, router, m, now_s):
    """Rows of a model that have its weights take no more requests; those without work leave, unless they are read."""
    rows = scaled.rows
    for j in range(rows.shape[0]):
        if rows[j, MODEL_OF] == m and has_weights(rows[j]):
            rows[j, OLD], rows[j, CHANGES] = 1, 0
            send_what_stayed(state, router, j, m + models_of(scaled))
            if rows[j, ROW_STATE] == DRAINING:
                state.instances[j, UP] = FINISHING
    for j in range(rows.shape[0]):
        if rows[j, MODEL_OF] == m and rows[j, ROW_STATE] == UP_STATE:
            drain(state, scaled, router, j, now_s)
    for j in range(rows.shape[0]):
        if rows[j, MODEL_OF] == m and rows[j, ROW_STATE] == WARM and not is_source(scaled, router, j):
            leave(state, scaled, j, now_s)
    for j in range(rows.shape[0]):
        if rows[j, MODEL_OF] == m and rows[j, OLD] == 1:
            rows[j, LOADED_AT] = LARGE  # no operation begun from now on reads it


@inner_kernel
def _begin_again(state, scaled, router, chooser, m, now_s):
    """Begin the loads of a model anew, operation by operation. False if the policy chose what was not offered."""
    before, after = scaled.counts[OPERATIONS], np.int64(-1)
    while True:
        j = _first_of_next(scaled, m, after, before)
        if j < 0:
            return True
        after = scaled.rows[j, OPERATION]
        group = state.instances[j, MODEL]
        _stop_reads(scaled, m, after, now_s)
        if not _stop_lanes(state, scaled, router, scaled.links, chooser, group, after, now_s):
            return False
        count = targets_of(scaled, router, group, after)
        _stop_flows(scaled, scaled.links, j, now_s)
        look_up(scaled, m, now_s)
        begin_loads(scaled, router, group, count, now_s)


@inner_kernel
def _first_of_next(scaled, m, after, before):
    """The first row of the first operation of a model with a number between two; -1 for none."""
    found = np.int64(-1)
    for j in range(scaled.rows.shape[0]):
        row = scaled.rows[j]
        if row[MODEL_OF] == m and is_loading(row) and after < row[OPERATION] < before:
            found, before = np.int64(j), row[OPERATION]
    return found


@inner_kernel
def _stop_reads(scaled, m, operation, now_s):
    """The rows of an operation read their hosts' SSDs no more, nor will they."""
    for j in range(scaled.rows.shape[0]):
        row = scaled.rows[j]
        if row[MODEL_OF] == m and is_loading(row) and row[OPERATION] == operation:
            scaled.times[j, SEEN_S] = np.inf
            if row[ON_SSD] == 1:
                drop_read(scaled, row[HOST_OF], j, now_s)


@inner_kernel
def _stop_lanes(state, scaled, router, links, chooser, m, operation, now_s):
    """Rows of an operation serve in pipelines no more; over links of KV there are none. False for a wrong choice."""
    if links is not None:
        return True
    return break_lanes(state, scaled, router, chooser, m, operation, np.int64(-1), now_s)


@inner_kernel
def _stop_flows(scaled, links, j, now_s):
    """The operation by which a row loads is over, if its senders are named."""
    if links is None:
        return
    if scaled.rows[j, TIER] == CHAIN_TIER or scaled.rows[j, TIER] == NEAR_TIER:
        end_operation(scaled, links, scaled.rows[j, OPERATION_AT], now_s)
