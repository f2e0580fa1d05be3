"""What will happen next by itself: loads complete, lanes form, warm rows expire, rows that drain are done."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.advancing import advance
from workbench.serving.kernels.events import rows_left
from workbench.serving.kernels.layout import (
    BEGIN,
    BEHIND,
    BOUNDARY,
    GOING,
    HOLDS,
    OUTSTANDING,
    PAGES_SHORT,
    PAGES_USED,
    ROWS_SHORT,
    RUNNING,
    STEP_FINISHES,
    WAITING,
)
from workbench.serving.kernels.routing import hand_out
from workbench.serving.kernels.rows import become_warm, is_loading, is_source, warm_until_s
from workbench.serving.kernels.scaled_layout import (
    ASSISTS_USED,
    DRAINING,
    FORMS_S,
    LOADS_USED,
    LOGS_SHORT,
    NEXT_DRAINED_S,
    NEXT_EXPIRY_S,
    NEXT_FORM_S,
    NEXT_LOAD_S,
    READY_S,
    ROW_STATE,
    SEEN_S,
    SSD_END_S,
    STATES_USED,
    TICKS_USED,
    WARM,
)
from workbench.serving.kernels.settling import end_all


@inner_kernel
def look_ahead(state, scaled, to_s):
    """Bring rows that drain up to `to_s`, or to the step with which they are done with somebody; note the first such.

    0, or which log is too short.
    """
    scaled.clock[NEXT_DRAINED_S] = np.inf
    for j in range(scaled.rows.shape[0]):
        if scaled.rows[j, ROW_STATE] != DRAINING:
            continue
        one, times = state.instances[j], state.reals[j]
        one[HOLDS] = 1
        stop = advance(state, j, to_s)
        if stop != 0:
            return stop
        if one[GOING] == 1 and one[STEP_FINISHES] == 1 and times[BOUNDARY] < to_s:
            scaled.clock[NEXT_DRAINED_S] = min(scaled.clock[NEXT_DRAINED_S], times[BOUNDARY])
    return 0


@inner_kernel
def end_drained(state, router, scaled, chooser, now_s):
    """End the steps that end now where rows drain; those left without requests are warm. False for a wrong choice."""
    for m in range(router.lines.shape[0]):
        if _drained_now(state, router, scaled, m, now_s):
            end_all(state, router, m, now_s)
    for j in range(scaled.rows.shape[0]):
        if scaled.rows[j, ROW_STATE] == DRAINING and state.instances[j, OUTSTANDING] == 0:
            become_warm(state, scaled, router, j, now_s)
    for m in range(router.lines.shape[0]):
        if router.lines[m, WAITING] > 0 and not hand_out(state, router, chooser, m, now_s):
            return False
    return True


@inner_kernel
def _drained_now(state, router, scaled, m, now_s):
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        ends = state.instances[j, GOING] == 1 and state.reals[j, BOUNDARY] == now_s
        if ends and scaled.rows[j, ROW_STATE] == DRAINING:
            return True
    return False


@inner_kernel
def foresee(state, router, scaled):
    """Work out when the next load completes, the next lane forms and the next warm row expires."""
    load_s, form_s, expiry_s = np.inf, np.inf, np.inf
    for h in range(scaled.hosts.shape[0]):
        load_s = min(load_s, scaled.hosts[h, SSD_END_S])
    for j in range(scaled.rows.shape[0]):
        row = scaled.rows[j]
        if is_loading(row):
            load_s = min(load_s, scaled.times[j, READY_S], scaled.times[j, SEEN_S])
            form_s = min(form_s, scaled.times[j, FORMS_S])
        elif row[ROW_STATE] == WARM and not is_source(scaled, router, j):
            expiry_s = min(expiry_s, warm_until_s(state, scaled, j))
    scaled.clock[NEXT_LOAD_S], scaled.clock[NEXT_FORM_S], scaled.clock[NEXT_EXPIRY_S] = load_s, form_s, expiry_s


@inner_kernel
def shortage_of_any(state, scaled):
    """Which log has no room for all that one instant can bring, 0 for none."""
    n, running, room = scaled.rows.shape[0], 0, scaled.logs.shape[1]
    for j in range(n):
        running += state.instances[j, RUNNING]
    if not rows_left(state, running):
        return ROWS_SHORT
    if state.shared[PAGES_USED] + n > state.pages.shape[0]:
        return PAGES_SHORT
    short = (
        scaled.counts[STATES_USED] + 8 * n > room
        or scaled.counts[LOADS_USED] + 2 * n > room
        or scaled.counts[TICKS_USED] + scaled.models.shape[0] > room
        or scaled.counts[ASSISTS_USED] + n > room
    )
    return LOGS_SHORT if short else 0
