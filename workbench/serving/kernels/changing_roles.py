"""Rows that take the place of others of the same model in another role, warm or busy: the weights are there."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.blocks import blocks_to_admit, take_blocks
from workbench.serving.kernels.handing_over import hand_out_and_on
from workbench.serving.kernels.layout import (
    BEGIN,
    BEHIND,
    BLOCKS,
    FREE,
    HELD,
    INSTANCE,
    LEAVING_HEAD,
    LIMIT,
    MADE,
    MODEL,
    MOVES,
    NEED,
    NEXT,
    OUTPUT,
    OUTSTANDING,
    PROMPT,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUED,
    ROOM,
    ROUTER_HEAD,
    ROUTER_TAIL,
    STAYING,
    STORED,
    TOKENS,
    WAITING,
    WAITING_TOKENS,
    WEIGHTS,
)
from workbench.serving.kernels.leaving import land_last, stop_leaving
from workbench.serving.kernels.lists import merged
from workbench.serving.kernels.loading import come_up
from workbench.serving.kernels.losing import forget_waiting
from workbench.serving.kernels.routing import has_room, wake
from workbench.serving.kernels.rows import change, is_source, log_load
from workbench.serving.kernels.sampling import count_rows
from workbench.serving.kernels.scaled_layout import (
    AT_PLACE,
    CHANGES,
    DRAINING,
    EMPTY,
    FORMS_S,
    FROM_HOSTS,
    MUTATES,
    OCCUPANT,
    OLD,
    OPERATIONS,
    PIPELINE,
    PLACE_AT,
    PLACE_OF,
    READY_S,
    REQUEUES,
    ROW_STATE,
    STARTING,
    STAYS,
    TARGETS,
    TIER,
    UP_STATE,
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
        _follow(state, scaled, j, now_s)
        scaled.lists[TARGETS, count] = j
        count += 1
    for i in range(count):
        _have_weights(scaled, scaled.lists[TARGETS, i], now_s)
    if count > 0:
        scaled.counts[OPERATIONS] += 1
    for i in range(count):
        if not come_up(state, scaled, router, chooser, scaled.lists[TARGETS, i], now_s):
            return count, False
    return count, True


@inner_kernel
def take_busy(state, scaled, router, links, chooser, m, need, now_s):
    """Let busy rows that compute prompts give their places to a group that decodes, when they have nothing left.

    How many, how many of these were up, so that others are to start; and False if the policy chose what was not
    offered.
    """
    taken, replaced = np.int64(0), np.int64(0)
    if links is None or scaled.models[m, MUTATES] == 0:
        return taken, replaced, True
    first = m - router.lines.shape[0] // 2
    room = _room(scaled, router, first)
    while taken < need and count_rows(scaled.rows, router, m, UP_STATE) > 0:
        j = _one_to_take(state, scaled, router, m, first, np.int64(DRAINING))
        if j < 0 and scaled.models[m, MUTATES] == 2 and count_rows(scaled.rows, router, first, UP_STATE) > 1:
            j = _one_to_take(state, scaled, router, m, first, np.int64(UP_STATE))
        if j < 0:
            break
        if scaled.rows[j, ROW_STATE] == UP_STATE:
            if replaced == room:
                break
            replaced += 1
            change(state, scaled, j, DRAINING, now_s)
        scaled.rows[j, CHANGES] = 1
        if scaled.models[m, STAYS] == 1:
            state.instances[j, STAYING] = 1
            forget_waiting(state, router, j, m)
        if scaled.models[m, REQUEUES] == 1 or scaled.models[m, STAYS] == 1:  # that KV may take the blocks of a queue
            _give_back(state, router, j, first)
            if not hand_out_and_on(state, router, links, chooser, first, now_s):
                return taken, replaced, False
        taken += 1
    return taken, replaced, True


@inner_kernel
def change_role(state, scaled, router, chooser, j, now_s):
    """A row that has nothing left gives its place to the other one of its model there. False for a wrong choice."""
    m = (state.instances[j, MODEL] + router.lines.shape[0] // 2) % router.lines.shape[0]
    new = _row_on(state, scaled, m, scaled.rows[j, PLACE_OF])
    _follow(state, scaled, new, now_s)
    _have_weights(scaled, new, now_s)
    scaled.counts[OPERATIONS] += 1
    _take_over(state, router, j, new, m % (router.lines.shape[0] // 2), now_s)
    return come_up(state, scaled, router, chooser, new, now_s)


@inner_kernel
def _take_over(state, router, old, j, m, now_s):
    """A row that is about to come up has the KV that stayed on its place, as far as it can decode it; the others whose
    it was wait to be computed anew, before their equals."""
    requests, one, line = state.requests, state.instances[j], router.lines[m]
    before, first, last = state.instances[old], np.int64(-1), np.int64(-1)
    one[WEIGHTS] = before[WEIGHTS]
    while before[LEAVING_HEAD] >= 0:
        r = before[LEAVING_HEAD]
        before[FREE] += requests[r, HELD]
        stop_leaving(requests, before, r)
        tokens = requests[r, PROMPT] + requests[r, OUTPUT]
        if one[OUTSTANDING] < one[LIMIT] and tokens <= one[ROOM] and has_room(requests, one, r):
            requests[r, INSTANCE], requests[r, HELD] = j, blocks_to_admit(requests, one, r)
            take_blocks(one, requests[r, HELD])
            one[OUTSTANDING] += 1
            one[TOKENS] += requests[r, OUTPUT] - requests[r, MADE]
            land_last(requests, one, r)
            wake(state, j, now_s)
        else:
            requests[r, MOVES] += 1
            requests[r, STORED], requests[r, NEED] = 0, requests[r, PROMPT] + requests[r, MADE]
            requests[r, NEXT] = -1
            line[WAITING] += 1
            line[WAITING_TOKENS] += requests[r, NEED]
            first, last = merged(requests, first, last, r, r)
    line[ROUTER_HEAD], line[ROUTER_TAIL] = merged(requests, first, last, line[ROUTER_HEAD], line[ROUTER_TAIL])


@inner_kernel
def _follow(state, scaled, j, now_s):
    """A row takes its place from the one that has it."""
    p = scaled.rows[j, PLACE_OF]
    change(state, scaled, scaled.lists[OCCUPANT, p], EMPTY, now_s)
    scaled.lists[OCCUPANT, p] = j
    scaled.rows[j, TIER] = RESIDENT_TIER  # by that of an earlier load it would read the weights of others
    change(state, scaled, j, STARTING, now_s)


@inner_kernel
def _have_weights(scaled, j, now_s):
    """The load of a row whose weights are there, of the operation that is next."""
    row, times = scaled.rows[j], scaled.times[j]
    row[PIPELINE], row[FROM_HOSTS] = -1, 0
    times[READY_S], times[FORMS_S] = now_s, np.inf
    log_load(scaled, j, np.int64(0), now_s)


@inner_kernel
def _one_to_take(state, scaled, router, m, first, row_state):
    """Of the rows of a group in a state the one with the fewest blocks in use that may change its role; -1 for none."""
    best, fewest = np.int64(-1), np.int64(0)
    for k in range(router.lines[first, BEGIN], router.lines[first, BEHIND]):
        j = router.members[k]
        row, blocks = scaled.rows[j], state.instances[j, BLOCKS] - state.instances[j, FREE]
        able = row[ROW_STATE] == row_state and row[CHANGES] == 0 and row[OLD] == 0
        if not able or (best >= 0 and blocks >= fewest):
            continue
        if not is_source(scaled, router, j) and _row_on(state, scaled, m, row[PLACE_OF]) >= 0:
            best, fewest = j, blocks
    return best


@inner_kernel
def _room(scaled, router, m):
    """Free places that a group has a row for."""
    count = 0
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        row = scaled.rows[router.members[k]]
        count += 1 if row[ROW_STATE] == EMPTY and scaled.lists[OCCUPANT, row[PLACE_OF]] < 0 else 0
    return count


@inner_kernel
def _give_back(state, router, j, m):
    """What waits in the queue of an instance waits at the router, before its equals there."""
    requests, one, line = state.requests, state.instances[j], router.lines[m]
    r = one[QUEUE_HEAD]
    while r >= 0:
        requests[r, MOVES] += 1
        line[WAITING] += 1
        line[WAITING_TOKENS] += requests[r, NEED]
        one[OUTSTANDING] -= 1
        one[TOKENS] -= requests[r, NEED] - requests[r, STORED] + requests[r, OUTPUT] - requests[r, MADE]
        r = requests[r, NEXT]
    first, last = one[QUEUE_HEAD], one[QUEUE_TAIL]
    one[QUEUE_HEAD] = one[QUEUE_TAIL] = -1
    one[QUEUED] = 0
    line[ROUTER_HEAD], line[ROUTER_TAIL] = merged(requests, first, last, line[ROUTER_HEAD], line[ROUTER_TAIL])


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
