"""The event loop of a cluster that changes its size: what `events.run` does, and loads, lanes, ticks, drained rows.

Between these, instances do not see each other, as there: they are brought up to an instant and no further. Only rows
that drain are looked at ahead, because the end of their last request changes the cluster.
"""

import numpy as np

from workbench.jit import lean_kernel
from workbench.serving.kernels.ahead import end_drained, foresee, look_ahead, shortage_of_any
from workbench.serving.kernels.breaking import break_down, recover
from workbench.serving.kernels.events import fits_somewhere, log_rest
from workbench.serving.kernels.host_cache import make_room_first
from workbench.serving.kernels.layout import (
    ARRIVAL_S,
    BAD_CHOICE,
    FINISHED,
    OUTPUT,
    PROMPT,
    REJECTED,
    REQUEST_MODEL,
    ROWS_SHORT,
    STATUS,
)
from workbench.serving.kernels.loading import complete
from workbench.serving.kernels.piping import form_lanes
from workbench.serving.kernels.routing import hand_out, wait_at_router
from workbench.serving.kernels.rows import expire
from workbench.serving.kernels.scaled_layout import (
    ARRIVED,
    DRAINING_ROWS,
    LAST_S,
    NEXT_DRAINED_S,
    NEXT_EXPIRY_S,
    NEXT_FORM_S,
    NEXT_LOAD_S,
    TICK,
    TICK_S,
    TICKING,
    UPDATE_S,
    UPDATED,
)
from workbench.serving.kernels.settling import settle
from workbench.serving.kernels.ticking import tick
from workbench.serving.kernels.updating import update

ARRIVAL, FAILURE, RECOVERY, CLOSING, LOAD_END, FORMED, EXPIRY, RENEWED, TICKED, DRAINED = range(10)
PLACES = 10
"""How many numbers `place` of `run_scaled` has."""


@lean_kernel
def run_scaled(state, router, scaled, chooser, until_s, failures, place):
    """Run to the end, or until a log is too short: then call again with longer logs, everything else is kept.

    Parameters:
        state, router: see `layout`.
        scaled: see `scaled_layout`.
        chooser, until_s: as for `events.run`.
        failures: (time_s, place that fails, back_s, order of the recoveries).
        place: int64[10], how many there have been of each kind of event, see `ARRIVAL` and those beside it.
    """
    fail_s, failing, back_s, order = failures
    clock, beyond_s = scaled.clock, np.nextafter(until_s, np.inf)
    make_room_first(scaled)
    while True:
        arrives = state.moments[place[ARRIVAL], ARRIVAL_S] if place[ARRIVAL] < state.moments.shape[0] else np.inf
        fails = fail_s[place[FAILURE]] if place[FAILURE] < fail_s.size else np.inf
        returns = back_s[order[place[RECOVERY]]] if place[RECOVERY] < order.size else np.inf
        ticks = float(scaled.counts[TICK]) * clock[TICK_S] if scaled.counts[TICKING] == 1 else np.inf
        updates = scaled.updates[scaled.counts[UPDATED], UPDATE_S]
        alone = min(clock[NEXT_LOAD_S], clock[NEXT_FORM_S], clock[NEXT_EXPIRY_S])
        now_s = min(min(arrives, fails, returns), min(ticks, alone, updates))
        now_s = max(now_s, clock[LAST_S])
        if scaled.counts[DRAINING_ROWS] > 0:
            stop = look_ahead(state, scaled, min(now_s, beyond_s))
            if stop != 0:
                return stop
            now_s = min(now_s, clock[NEXT_DRAINED_S])
        else:
            clock[NEXT_DRAINED_S] = np.inf
        # All models are brought up to now, or the one that a request comes for, or one after the other at the end.
        first, behind, to_s, r = 0, router.lines.shape[0], now_s, place[ARRIVAL]
        if now_s > until_s or now_s == np.inf:
            if place[CLOSING] == behind:
                return FINISHED
            kind, first, behind, to_s = CLOSING, place[CLOSING], place[CLOSING] + 1, beyond_s
        elif returns <= now_s:
            kind = RECOVERY
        elif fails <= now_s:
            kind = FAILURE
        elif clock[NEXT_LOAD_S] <= now_s:
            kind = LOAD_END
        elif clock[NEXT_FORM_S] <= now_s:
            kind = FORMED
        elif clock[NEXT_EXPIRY_S] <= now_s:
            kind = EXPIRY
        elif updates <= now_s:
            kind = RENEWED
        elif ticks <= now_s:
            kind = TICKED
        elif arrives <= now_s:
            first = np.int64(state.requests[r, REQUEST_MODEL])
            kind, behind = ARRIVAL, first + 1
            if not fits_somewhere(state, router, first, state.requests[r, PROMPT] + state.requests[r, OUTPUT]):
                state.requests[r, STATUS] = REJECTED
                place[ARRIVAL] += 1
                continue
        else:
            kind = DRAINED
        for m in range(first, behind):
            stop = settle(state, router, chooser, m, to_s)
            if stop != 0:
                return stop

        if kind == CLOSING:
            if not log_rest(state, router, first):
                return ROWS_SHORT
            place[CLOSING] += 1
            continue
        clock[LAST_S] = now_s
        if kind == ARRIVAL:
            wait_at_router(state, router, first, r)
            scaled.models[first, ARRIVED] += 1
            place[ARRIVAL] += 1
            if not hand_out(state, router, chooser, first, now_s):
                return BAD_CHOICE
            continue
        stop = shortage_of_any(state, scaled)
        if stop != 0:
            return stop
        right = True
        if kind == RECOVERY:
            recover(state, scaled, failing[order[place[RECOVERY]]], now_s)
        elif kind == FAILURE:
            right = break_down(state, router, scaled, chooser, failing[place[FAILURE]], now_s)
        elif kind == LOAD_END:
            right = complete(state, scaled, router, chooser, now_s)
        elif kind == FORMED:
            right = form_lanes(state, scaled, router, chooser, now_s)
        elif kind == EXPIRY:
            expire(state, scaled, router, now_s)
        elif kind == RENEWED:
            right = update(state, router, scaled, chooser, now_s)
        elif kind == TICKED:
            nothing_comes = place[ARRIVAL] == state.moments.shape[0] and min(fails, returns, updates) == np.inf
            right = tick(state, router, scaled, chooser, place[ARRIVAL], nothing_comes, now_s)
        else:
            right = end_drained(state, router, scaled, chooser, now_s)
        if not right:
            return BAD_CHOICE
        place[kind] += 1
        foresee(state, router, scaled)
