"""Bring all instances of a model up to an instant, with what the router does in between."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.advancing import advance
from workbench.serving.kernels.ending import end
from workbench.serving.kernels.layout import (
    BAD_CHOICE,
    BEGIN,
    BEHIND,
    BOUNDARY,
    GOING,
    HOLDS,
    LIMIT,
    OUTSTANDING,
    PAGES_SHORT,
    PAGES_USED,
    ROUTER_HEAD,
    ROWS_SHORT,
    ROWS_USED,
    RUNNING,
)
from workbench.serving.kernels.routing import hand_out, next_release


@inner_kernel
def settle(state, router, chooser, m, to_s):
    """Do everything that happens on a model's instances before `to_s`; 0, or why it stopped.

    While requests wait at the router, a full instance runs ahead of the others, up to the step with which it is done
    with somebody: until then nothing can be given to it. That step ends together with all that end at the same time,
    and the router hands out. Stopping for a log changes nothing that a second call would not do.
    """
    line = router.lines[m]
    while True:
        waiting, bound_s = line[ROUTER_HEAD] >= 0, to_s
        if waiting:
            short = bring_up(state, router, m, to_s, np.int64(1))
            if short != 0:
                return short
            bound_s = min(next_release(state, router, m), to_s)
        short = bring_up(state, router, m, bound_s, np.int64(0))
        if short != 0:
            return short
        if not (waiting and bound_s < to_s):
            return 0
        short = end_all(state, router, m, bound_s)
        if short != 0:
            return short
        if not hand_out(state, router, chooser, m, bound_s):
            return BAD_CHOICE


@inner_kernel
def bring_up(state, router, m, to_s, ahead):
    """Advance a model's instances: with `ahead` 1 only the full ones, each up to its next release."""
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        full = state.instances[j, OUTSTANDING] >= state.instances[j, LIMIT]
        if state.reals[j, BOUNDARY] < to_s and (full or ahead == 0):
            state.instances[j, HOLDS] = ahead
            short = advance(state, j, to_s)
            if short != 0:
                return short
    return 0


@inner_kernel
def end_all(state, router, m, now_s):
    """End the steps of a model's instances that end now, once the logs have room for all of them."""
    rows = 0
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        rows += state.instances[router.members[k], RUNNING]
    if state.shared[PAGES_USED] + router.lines[m, BEHIND] - router.lines[m, BEGIN] > state.pages.shape[0]:
        return PAGES_SHORT
    if state.shared[ROWS_USED] + rows > state.rows.shape[0]:
        return ROWS_SHORT
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        if state.instances[j, GOING] == 1 and state.reals[j, BOUNDARY] == now_s:
            end(state, j)
    return 0
