"""The event loop of a cluster that changes its size and whose instances have roles.

It does to rows what `scaled_events.run_scaled` does, and brings instances up as `roles_events.run_roles` does: those
that only prefill, and rows that drain, meet others at the end of every step with which somebody is done.
"""

import numpy as np

from workbench.jit import inner_kernel, lean_kernel
from workbench.serving.kernels.ahead import foresee
from workbench.serving.kernels.ahead import shortage_of_any as shortage_of_logs
from workbench.serving.kernels.breaking import recover
from workbench.serving.kernels.changing_roles import change_role
from workbench.serving.kernels.events import log_rest
from workbench.serving.kernels.flows import drop_flow, share_rates, turn_port
from workbench.serving.kernels.handing_over import (
    hand_on,
    hand_out_all,
    hand_out_model,
    land,
    line_up,
    send,
    send_what_stayed,
)
from workbench.serving.kernels.helping import end_help, end_helps, watch_helped
from workbench.serving.kernels.host_cache import make_room, make_room_first
from workbench.serving.kernels.layout import (
    ARRIVAL_S,
    BAD_CHOICE,
    FINISHED,
    HOLDS,
    OUTPUT,
    PROMPT,
    REJECTED,
    REQUEST_MODEL,
    ROWS_SHORT,
    STATUS,
    WAITING,
)
from workbench.serving.kernels.leaving import is_done, is_idle
from workbench.serving.kernels.loading import complete
from workbench.serving.kernels.losing import lose
from workbench.serving.kernels.losing_weights import lose_way_out, lose_weights
from workbench.serving.kernels.roles_events import (
    bring_up_all,
    end_steps,
    fits_both,
    mark_watched,
    shortage_of_any,
)
from workbench.serving.kernels.roles_layout import (
    END_S,
    FLOWS_SHORT,
    HOP_ROOM,
    HOPS_USED,
    INSTANCES,
    NEXT_FLOW,
    NEXT_LANDING_S,
    NEXT_TURN_S,
    OP,
    OPS_USED,
    UNEVEN,
)
from workbench.serving.kernels.routing import hand_out, wait_at_router
from workbench.serving.kernels.rows import become_warm, change, expire, is_source
from workbench.serving.kernels.scaled_layout import (
    ARRIVED,
    AT_PLACE,
    CHANGES,
    DEAD,
    DRAINING,
    DRAINING_ROWS,
    HOST_OF,
    LAST_S,
    MODEL_OF,
    NEXT_DRAINED_S,
    NEXT_EXPIRY_S,
    NEXT_LOAD_S,
    OCCUPANT,
    OLD,
    ON_SSD,
    PLACE_AT,
    ROW_STATE,
    STARTING,
    TICK,
    TICK_S,
    TICKING,
    UP_STATE,
    UPDATE_S,
    UPDATED,
)
from workbench.serving.kernels.sending import sent
from workbench.serving.kernels.ssd import drop_read
from workbench.serving.kernels.ticking import tick
from workbench.serving.kernels.updating import update

ARRIVAL, FAILURE, RECOVERY = 0, 1, 2


@lean_kernel
def run_scaled_roles(state, router, scaled, chooser, until_s, failures, place):
    """Run to the end, or until a log is too short: then call again with longer logs, everything else is kept.

    Parameters:
        state, router: see `layout`; the router has a line for each group.
        scaled: see `scaled_layout`; with links.
        chooser, until_s, failures: as for `scaled_events.run_scaled`.
        place: int64[3], how many arrivals, failures and recoveries there have been.
    """
    fail_s, failing, back_s, order = failures
    clock, links = scaled.clock, scaled.links
    models, beyond_s = router.lines.shape[0] // 2, np.nextafter(until_s, np.inf)
    make_room_first(scaled)
    while True:
        arrives = state.moments[place[ARRIVAL], ARRIVAL_S] if place[ARRIVAL] < state.moments.shape[0] else np.inf
        fails = fail_s[place[FAILURE]] if place[FAILURE] < fail_s.size else np.inf
        returns = back_s[order[place[RECOVERY]]] if place[RECOVERY] < order.size else np.inf
        ticks = float(scaled.counts[TICK]) * clock[TICK_S] if scaled.counts[TICKING] == 1 else np.inf
        lands, turns = links.clock[NEXT_LANDING_S], links.clock[NEXT_TURN_S]
        mark_watched(state, router, models)
        hold_draining(state, scaled)
        alone = min(clock[NEXT_LOAD_S], clock[NEXT_EXPIRY_S], clock[NEXT_DRAINED_S])
        updates = scaled.updates[scaled.counts[UPDATED], UPDATE_S]
        outside_s = max(min(min(arrives, fails, returns), min(ticks, lands, alone), min(turns, updates)), clock[LAST_S])
        stop, now_s = watch_helped(state, scaled, router, links, min(outside_s, beyond_s))
        if stop == 0:
            stop = bring_up_all(state, min(now_s, beyond_s))
        if stop == 0:
            stop = shortage_of_any(state, router, links, models, 4 * scaled.rows.shape[0])
        if stop == 0:
            stop = shortage_of_logs(state, scaled)
        if stop == 0:
            stop = shortage_of_operations(links)
        if stop != 0:
            return stop
        if not now_s < beyond_s:
            for line in range(2 * models):
                if not log_rest(state, router, line):
                    return ROWS_SHORT
            return FINISHED
        clock[LAST_S] = now_s
        right = True
        if returns <= now_s:
            recover(state, scaled, failing[order[place[RECOVERY]]], now_s)
            place[RECOVERY] += 1
        elif fails <= now_s:
            right = break_place(state, router, scaled, links, chooser, failing[place[FAILURE]], now_s)
            place[FAILURE] += 1
        elif turns <= now_s:
            lose_way_out(scaled, router, links, turn_port(links, now_s), now_s)
        elif lands <= now_s:
            end_flow(state, scaled, links, now_s)
        elif clock[NEXT_LOAD_S] <= now_s:
            right = complete(state, scaled, router, chooser, now_s)
        elif clock[NEXT_EXPIRY_S] <= now_s:
            expire(state, scaled, router, now_s)
        elif updates <= now_s:
            right = update(state, router, scaled, chooser, now_s)
        elif ticks <= now_s:
            nothing_comes = place[ARRIVAL] == state.moments.shape[0] and min(fails, returns, updates) == np.inf
            right = tick(state, router, scaled, chooser, place[ARRIVAL], nothing_comes, now_s)
        elif arrives <= now_s:
            r = place[ARRIVAL]
            m = np.int64(state.requests[r, REQUEST_MODEL])
            tokens = state.requests[r, PROMPT] + state.requests[r, OUTPUT]
            place[ARRIVAL] += 1
            if m < models and fits_both(state, router, m, models, tokens):
                wait_at_router(state, router, m, r)
                scaled.models[m, ARRIVED] += 1
                right = hand_out(state, router, chooser, m, now_s)
            else:
                state.requests[r, STATUS] = REJECTED
            if right:
                continue
        else:
            end_helps(state, scaled, now_s)
            somebody = end_steps(state, now_s)
            count_and_line_up(state, router, scaled, models)
            right = cool_drained(state, router, scaled, chooser, models, now_s)
            if right and somebody:
                right = hand_out_all(state, router, links, chooser, models, now_s)
        if not right:
            return BAD_CHOICE
        if links.counts[UNEVEN] == 1:
            share_rates(links)
        foresee(state, router, scaled)


@inner_kernel
def shortage_of_operations(links):
    """`FLOWS_SHORT` if the logs of operations have no room for all that one instant can bring, else 0."""
    counts = links.counts
    short = counts[OPS_USED] + counts[INSTANCES] > links.ops.shape[0]
    short |= counts[HOPS_USED] + counts[HOP_ROOM] > links.hops.shape[0]
    return FLOWS_SHORT if short else 0


@inner_kernel
def end_flow(state, scaled, links, now_s):
    """The flow that is due has come, of KV or of weights."""
    entry = links.counts[NEXT_FLOW]
    o = np.int64(links.flows[entry, OP])
    if o < 0:
        land(state, links, now_s)
        return
    drop_flow(links, entry, now_s)
    links.flows[entry, END_S] = now_s
    sent(scaled, links, o, now_s)


@inner_kernel
def hold_draining(state, scaled):
    """Let rows that drain hold too: the end of their last request changes the cluster.

    One whose last KV has been sent, or does not come any more, is done now.
    """
    scaled.clock[NEXT_DRAINED_S] = np.inf
    if scaled.counts[DRAINING_ROWS] > 0:
        for j in range(scaled.rows.shape[0]):
            if scaled.rows[j, ROW_STATE] == DRAINING:
                state.instances[j, HOLDS] = 1
                if is_done(state, j):
                    scaled.clock[NEXT_DRAINED_S] = scaled.clock[LAST_S]


@inner_kernel
def cool_drained(state, router, scaled, chooser, models, now_s):
    """Rows that drain and have nothing left are warm, or have another role; the router hands on behind each that is of
    an older version. False for a wrong choice."""
    j, right = np.int64(0), True
    while right and j < scaled.rows.shape[0]:
        row = scaled.rows[j]
        if row[ROW_STATE] != DRAINING or not is_done(state, j):
            j += 1
            continue
        if row[CHANGES] == 1 and not is_source(scaled, router, j):
            right = change_role(state, scaled, router, chooser, j, now_s)
        elif not is_idle(state.instances[j]):
            row[CHANGES] = 0
            send_what_stayed(state, router, j, row[MODEL_OF] + models)
            right = hand_on(state, router, chooser, row[MODEL_OF], models, now_s)
        else:
            become_warm(state, scaled, router, j, now_s)
            if row[OLD] == 1:
                right = hand_on(state, router, chooser, row[MODEL_OF], models, now_s)
        j = np.int64(0)  # somebody before it may have nothing left now
    send(state, scaled.links, now_s)
    return right


@inner_kernel
def count_and_line_up(state, router, scaled, models):
    """Those who have left their instances wait to decode, and count as arrivals there."""
    for line in range(models, scaled.models.shape[0]):
        scaled.models[line, ARRIVED] -= router.lines[line, WAITING]
    line_up(state, router, models)
    for line in range(models, scaled.models.shape[0]):
        scaled.models[line, ARRIVED] += router.lines[line, WAITING]


@inner_kernel
def break_place(state, router, scaled, links, chooser, p, now_s):
    """A place fails with what is in it. False if the policy chose what was not offered."""
    used, models = scaled.lists[OCCUPANT, p], router.lines.shape[0] // 2
    before = scaled.rows[used, ROW_STATE] if used >= 0 else DEAD
    for k in range(scaled.lists[PLACE_AT, p], scaled.lists[PLACE_AT, p + 1]):
        change(state, scaled, scaled.lists[AT_PLACE, k], DEAD, now_s)
    scaled.lists[OCCUPANT, p] = -1
    h = scaled.rows[scaled.lists[AT_PLACE, scaled.lists[PLACE_AT, p]], HOST_OF]
    make_room(scaled, h, now_s)
    if used < 0:
        return True
    m = scaled.rows[used, MODEL_OF]
    if before in (UP_STATE, DRAINING):
        end_help(scaled, used, np.nan)
        lose(state, router, links, used, m, models, now_s)
    if not hand_out_model(state, router, links, chooser, m, models, now_s):
        return False
    if scaled.rows[used, ON_SSD] == 1:
        drop_read(scaled, h, used, now_s)
    lose_weights(scaled, router, links, used, before == STARTING, now_s)
    return True
