"""Rows that take the place of warm ones of the same model in another role: the weights are there."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.layout import BEGIN, BEHIND, MODEL
from workbench.serving.kernels.loading import come_up
from workbench.serving.kernels.rows import change, is_source, log_load
from workbench.serving.kernels.scaled_layout import (
    AT_PLACE,
    EMPTY,
    FORMS_S,
    FROM_HOSTS,
    OCCUPANT,
    OPERATIONS,
    PIPELINE,
    PLACE_AT,
    PLACE_OF,
    READY_S,
    ROW_STATE,
    STARTING,
    TARGETS,
    TIER,
    WARM,
    WARM_SINCE_S,
)
from workbench.serving.policy.scalers import RESIDENT_TIER


@inner_kernel
def change_roles(state, scaled, router, links, chooser, m, need, now_s):
    """Bring so many rows of a group up on places of warm rows of the model's other group, or as many as there are.

    How many; and False if the policy chose what was not offered.
    """
    count = np.int64(0)
    if links is None:
        return count, True
    while count < need:
        j = _one_to_follow(state, scaled, router, m)
        if j < 0:
            break
        p = scaled.rows[j, PLACE_OF]
        change(state, scaled, scaled.lists[OCCUPANT, p], EMPTY, now_s)
        scaled.lists[OCCUPANT, p] = j
        change(state, scaled, j, STARTING, now_s)
        scaled.lists[TARGETS, count] = j
        count += 1
    for i in range(count):
        j = scaled.lists[TARGETS, i]
        row, times = scaled.rows[j], scaled.times[j]
        row[TIER], row[PIPELINE], row[FROM_HOSTS] = RESIDENT_TIER, -1, 0
        times[READY_S], times[FORMS_S] = now_s, np.inf
        log_load(scaled, j, np.int64(0), now_s)
    if count > 0:
        scaled.counts[OPERATIONS] += 1
    for i in range(count):
        if not come_up(state, scaled, router, chooser, scaled.lists[TARGETS, i], now_s):
            return count, False
    return count, True


@inner_kernel
def _one_to_follow(state, scaled, router, m):
    """The empty row of a group whose place has been warm in the model's other role the longest; -1 for none."""
    best, victim, lines = np.int64(-1), np.int64(-1), router.lines.shape[0]
    other_line = (m + lines // 2) % lines
    for k in range(router.lines[other_line, BEGIN], router.lines[other_line, BEHIND]):
        other = router.members[k]
        if scaled.rows[other, ROW_STATE] != WARM or is_source(scaled, router, other):
            continue
        since_s = scaled.times[other, WARM_SINCE_S]
        if victim >= 0 and since_s >= scaled.times[victim, WARM_SINCE_S]:
            continue
        j = _row_on(state, scaled, m, scaled.rows[other, PLACE_OF])
        if j >= 0:
            best, victim = j, other
    return best


@inner_kernel
def _row_on(state, scaled, m, p):
    """The row of a group on a place, if it is empty; else -1."""
    for k in range(scaled.lists[PLACE_AT, p], scaled.lists[PLACE_AT, p + 1]):
        j = scaled.lists[AT_PLACE, k]
        if state.instances[j, MODEL] == m and scaled.rows[j, ROW_STATE] == EMPTY:
            return j
    return np.int64(-1)
