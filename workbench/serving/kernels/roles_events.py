"""The event loop of a cluster whose instances have roles: what `events.run` does, and KV that goes from one to another.

Instances that only prefill meet others at the end of every step that completes a prompt, and, while somebody waits to
decode, all instances do whenever somebody is done. These are *watched*: they are brought up together, in order of time,
so that none gets ahead of what another may still cause. The others are brought up from event to event.
"""

import numpy as np

from workbench.jit import inner_kernel, lean_kernel
from workbench.serving.kernels.advancing import advance
from workbench.serving.kernels.ending import end
from workbench.serving.kernels.events import fits_somewhere, log_rest
from workbench.serving.kernels.flows import share_rates, turn_port
from workbench.serving.kernels.handing_over import hand_out_all, hand_out_model, land, line_up
from workbench.serving.kernels.layout import (
    ARRIVAL_S,
    BAD_CHOICE,
    BEGIN,
    BEHIND,
    BOUNDARY,
    COMING,
    FINISHED,
    GOING,
    HOLDS,
    MODEL,
    OUTPUT,
    PAGES_SHORT,
    PAGES_USED,
    PREFILLS,
    PROMPT,
    REJECTED,
    REQUEST_MODEL,
    ROLE,
    ROUTER_HEAD,
    ROWS_SHORT,
    ROWS_USED,
    RUNNING,
    STATUS,
    STEP_FINISHES,
    UP,
    WAITING,
)
from workbench.serving.kernels.losing import lose
from workbench.serving.kernels.roles_layout import FLOWS_SHORT, FLOWS_USED, NEXT_LANDING_S, NEXT_TURN_S
from workbench.serving.kernels.routing import hand_out, wait_at_router

ARRIVAL, FAILURE, RECOVERY = 0, 1, 2


@lean_kernel
def run_roles(state, router, links, chooser, until_s, failures, place):
    """Run to the end, or until a log is too short: then call again with longer logs, everything else is kept.

    Parameters:
        state, router: see `layout`; the router has a line for each model, and after these one more for each.
        links: see `roles_layout`.
        chooser, until_s, failures: as for `events.run`.
        place: int64[3], how many arrivals, failures and recoveries there have been.
    """
    fail_s, failing, back_s, order = failures
    models, beyond_s = router.lines.shape[0] // 2, np.nextafter(until_s, np.inf)
    while True:
        arrives = state.moments[place[ARRIVAL], ARRIVAL_S] if place[ARRIVAL] < state.moments.shape[0] else np.inf
        fails = fail_s[place[FAILURE]] if place[FAILURE] < fail_s.size else np.inf
        returns = back_s[order[place[RECOVERY]]] if place[RECOVERY] < order.size else np.inf
        lands, turns = links.clock[NEXT_LANDING_S], links.clock[NEXT_TURN_S]
        outside_s = min(min(arrives, fails), min(returns, lands, turns))
        mark_watched(state, router, models)
        stop, now_s = watch(state, min(outside_s, beyond_s))
        if stop == 0:
            stop = bring_up_all(state, min(now_s, beyond_s))
        if stop == 0:
            stop = shortage_of_any(state, router, links, models, 0)
        if stop != 0:
            return stop
        right = True
        if not now_s < beyond_s:
            for line in range(2 * models):
                if not log_rest(state, router, line):
                    return ROWS_SHORT
            return FINISHED
        if returns <= now_s:
            j = failing[order[place[RECOVERY]]]
            state.instances[j, UP] = 1
            right = hand_out_model(state, router, links, chooser, state.instances[j, MODEL] % models, models, now_s)
            place[RECOVERY] += 1
        elif fails <= now_s:
            j = failing[place[FAILURE]]
            m = state.instances[j, MODEL] % models
            lose(state, router, links, j, m, models, now_s)
            right = hand_out_model(state, router, links, chooser, m, models, now_s)
            place[FAILURE] += 1
        elif turns <= now_s:
            turn_port(links, now_s)
            share_rates(links)
        elif lands <= now_s:
            land(state, links, now_s)
        elif arrives <= now_s:
            r = place[ARRIVAL]
            m = np.int64(state.requests[r, REQUEST_MODEL])
            place[ARRIVAL] += 1
            if fits_both(state, router, m, models, state.requests[r, PROMPT] + state.requests[r, OUTPUT]):
                wait_at_router(state, router, m, r)
                right = hand_out(state, router, chooser, m, now_s)
            else:
                state.requests[r, STATUS] = REJECTED
        else:
            end_steps(state, now_s)
            line_up(state, router, models)
            right = hand_out_all(state, router, links, chooser, models, now_s)
        if not right:
            return BAD_CHOICE


@inner_kernel
def fits_both(state, router, m, models, tokens):
    """Whether some instance of a model can prefill a request, and some can decode it where these are others."""
    decodes = router.lines[m + models, BEHIND] > router.lines[m + models, BEGIN]
    fits = fits_somewhere(state, router, m, tokens)
    return fits and (not decodes or fits_somewhere(state, router, m + models, tokens))


@inner_kernel
def mark_watched(state, router, models):
    """Let all instances hold whose next step end may matter to others."""
    waits = False
    for line in range(models, 2 * models):
        waits |= router.lines[line, ROUTER_HEAD] >= 0
    for j in range(state.instances.shape[0]):
        one = state.instances[j]
        matters = waits or one[ROLE] == PREFILLS or router.lines[one[MODEL], ROUTER_HEAD] >= 0
        one[HOLDS] = 1 if matters else 0


@inner_kernel
def watch(state, to_s):
    """Bring watched instances up to `to_s`, or to the first end of a step that others wait for.

    0, or which log is too short; and the instant.
    """
    while True:
        first_s, second_s, j, ends = first_boundary(state)
        if not first_s < to_s:
            return 0, to_s
        if ends:
            return 0, first_s
        stop = advance(state, j, max(min(second_s, to_s), np.nextafter(first_s, np.inf)))
        if stop != 0:
            return stop, first_s


@inner_kernel
def first_boundary(state):
    """The first boundary of those that hold, the next one, whose the first is, and whether a step ends then that others
    wait for."""
    first_s, second_s, j, ends = np.inf, np.inf, np.int64(-1), False
    for i in range(state.instances.shape[0]):
        one, boundary_s = state.instances[i], state.reals[i, BOUNDARY]
        if one[HOLDS] == 0:
            continue
        matters = one[GOING] == 1 and one[STEP_FINISHES] > 0
        if boundary_s < first_s:
            first_s, second_s, j, ends = boundary_s, first_s, np.int64(i), matters
        else:
            second_s = min(second_s, boundary_s)
            ends |= matters and boundary_s == first_s
    return first_s, second_s, j, ends


@inner_kernel
def bring_up_all(state, to_s):
    """Do everything that happens on any instance before `to_s`; 0, or which log is too short."""
    for j in range(state.instances.shape[0]):
        if state.reals[j, BOUNDARY] < to_s:
            stop = advance(state, j, to_s)
            if stop != 0:
                return stop
    return 0


@inner_kernel
def end_steps(state, now_s):
    """End all steps that end now; whether somebody is done with one of them."""
    somebody = False
    for j in range(state.instances.shape[0]):
        one = state.instances[j]
        if one[GOING] == 1 and state.reals[j, BOUNDARY] == now_s:
            somebody |= one[STEP_FINISHES] == 1
            end(state, j)
    return somebody


@inner_kernel
def shortage_of_any(state, router, links, models, more):
    """Which log has no room for all that one instant can bring, and so many more flows; 0 for none."""
    running, flows = 0, more
    for j in range(state.instances.shape[0]):
        one = state.instances[j]
        running += one[RUNNING]
        flows += one[COMING] + (one[RUNNING] if one[ROLE] == PREFILLS else 0)
    for line in range(models, 2 * models):
        flows += router.lines[line, WAITING]
    if state.shared[PAGES_USED] + state.instances.shape[0] > state.pages.shape[0]:
        return PAGES_SHORT
    if state.shared[ROWS_USED] + running > state.rows.shape[0]:
        return ROWS_SHORT
    return FLOWS_SHORT if links.counts[FLOWS_USED] + flows > links.flows.shape[0] else 0
