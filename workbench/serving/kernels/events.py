"""The event loop: recoveries, failures and arrivals in order; in between, instances are brought up to each of them."""

import numpy as np

from workbench.jit import inner_kernel, lean_kernel
from workbench.serving.kernels.decoding import count_all_up
from workbench.serving.kernels.failing import fail
from workbench.serving.kernels.layout import (
    ARRIVAL_S,
    BAD_CHOICE,
    BEGIN,
    BEHIND,
    FINISHED,
    HEAD,
    MODEL,
    NEXT,
    OUTPUT,
    PROMPT,
    REJECTED,
    REQUEST_MODEL,
    ROOM,
    ROWS_SHORT,
    ROWS_USED,
    RUNNING,
    STATUS,
    UP,
)
from workbench.serving.kernels.routing import hand_out, wait_at_router
from workbench.serving.kernels.segments import close_segment
from workbench.serving.kernels.settling import settle

ARRIVAL, FAILURE, RECOVERY, CLOSING = 0, 1, 2, 3


@lean_kernel
def run(state, router, chooser, until_s, failures, place):
    """Run to the end, or until a log is too short: then call again with longer logs, everything else is kept.

    Parameters:
        state, router: see `layout`.
        chooser: a first-class function that dispatches (see `policy.functions`), or None for the numbered policy.
        until_s: the last instant that happens.
        failures: (time_s, instance, back_s, order of the recoveries).
        place: int64[4], how many arrivals, failures, recoveries and closed models there have been.
    """
    fail_s, failing, back_s, order = failures
    while True:
        arrives = state.moments[place[ARRIVAL], ARRIVAL_S] if place[ARRIVAL] < state.moments.shape[0] else np.inf
        fails = fail_s[place[FAILURE]] if place[FAILURE] < fail_s.size else np.inf
        returns = back_s[order[place[RECOVERY]]] if place[RECOVERY] < order.size else np.inf
        now_s = min(arrives, fails, returns)
        j = r = np.int64(-1)
        if now_s > until_s or now_s == np.inf:
            # Nothing more from outside: every model runs on by itself.
            kind, m, now_s = CLOSING, place[CLOSING], np.nextafter(until_s, np.inf)
            if m == router.lines.shape[0]:
                return FINISHED
        elif returns == now_s:
            j = failing[order[place[RECOVERY]]]
            kind, m = RECOVERY, state.instances[j, MODEL]
        elif fails == now_s:
            j = failing[place[FAILURE]]
            kind, m = FAILURE, state.instances[j, MODEL]
        else:
            r = place[ARRIVAL]
            kind, m = ARRIVAL, np.int64(state.requests[r, REQUEST_MODEL])
            if not fits_somewhere(state, router, m, state.requests[r, PROMPT] + state.requests[r, OUTPUT]):
                state.requests[r, STATUS] = REJECTED
                place[ARRIVAL] += 1
                continue
        stop = settle(state, router, chooser, m, now_s)
        if stop != 0:
            return stop
        if kind == RECOVERY:
            state.instances[j, UP] = 1
        elif kind == FAILURE:
            if not rows_left(state, state.instances[j, RUNNING]):
                return ROWS_SHORT
            fail(state, router, j, m)
        elif kind == ARRIVAL:
            wait_at_router(state, router, m, r)
        elif not log_rest(state, router, m):
            return ROWS_SHORT
        place[kind] += 1
        if kind != CLOSING and not hand_out(state, router, chooser, m, now_s):
            return BAD_CHOICE


@inner_kernel
def rows_left(state, count):
    """Whether the log of segments has room for so many."""
    return state.shared[ROWS_USED] + count <= state.rows.shape[0]


@inner_kernel
def fits_somewhere(state, router, m, tokens):
    """Whether all tokens of a request fit in the KV blocks of some instance of its model, up or not."""
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        if tokens <= state.instances[router.members[k], ROOM]:
            return True
    return False


@inner_kernel
def log_rest(state, router, m):
    """Log the open segments of requests still running when the run ends; False if the log has no room."""
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        one = state.instances[j]
        if not rows_left(state, one[RUNNING]):
            return False
        count_all_up(state, one)
        r = one[HEAD] if one[RUNNING] > 0 else np.int64(-1)
        while r >= 0:
            close_segment(state, j, r)
            r = np.int64(state.requests[r, NEXT])
    return True
