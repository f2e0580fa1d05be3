"""Pipelines: rows that serve together while their weights are still on their way, one lane of the pipeline on each.

A lane runs whole steps, slower ones than the row by itself. It forms before the row has all its weights, breaks when a
member of its pipeline fails or its copies begin again, and switches to the row's own steps when the weights are there.
"""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.failing import fail, throw_out
from workbench.serving.kernels.layout import (
    BEGIN,
    BEHIND,
    BOUNDARY,
    FORM,
    FORM_ROW,
    MADE,
    MODEL,
    NEED,
    NEXT,
    OUTPUT,
    OUTSTANDING,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUED,
    TOKENS,
)
from workbench.serving.kernels.routing import hand_out
from workbench.serving.kernels.rows import change
from workbench.serving.kernels.scaled_layout import (
    FORMS_S,
    LOAD,
    LOADS,
    OPERATION,
    OTHER_FORM,
    PIPED,
    PIPELINE,
    ROW_STATE,
    STARTING,
)


@inner_kernel
def exchange_forms(numbers, times):
    """Let the steps of a row take as long as a lane's, or as its own again; of one row of each array."""
    for k in range(2 * FORM_ROW):
        used = numbers[FORM + k]
        numbers[FORM + k] = times[OTHER_FORM + k]
        times[OTHER_FORM + k] = used


@inner_kernel
def form_lanes(state, scaled, router, chooser, now_s):
    """Let rows whose time has come serve, and the router hand out. False if the policy chose what was not offered."""
    for j in range(scaled.rows.shape[0]):
        if scaled.rows[j, ROW_STATE] == STARTING and scaled.times[j, FORMS_S] <= now_s:
            change(state, scaled, j, PIPED, now_s)
            exchange_forms(state.reals[j], scaled.times[j])
            scaled.times[j, FORMS_S] = np.inf
            scaled.logs[LOADS, scaled.rows[j, LOAD], 8] = now_s
            if not hand_out(state, router, chooser, state.instances[j, MODEL], now_s):
                return False
    return True


@inner_kernel
def break_lanes(state, scaled, router, chooser, m, operation, pipeline, now_s):
    """Let the lanes of a pipeline, or with -1 all of an operation, serve no more: their requests go to the router.

    Their loads go on. False if the policy chose what was not offered.
    """
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        row = scaled.rows[j]
        if row[OPERATION] != operation or (pipeline >= 0 and row[PIPELINE] != pipeline):
            continue
        scaled.times[j, FORMS_S] = np.inf
        if row[ROW_STATE] == PIPED:
            change(state, scaled, j, STARTING, now_s)
            exchange_forms(state.reals[j], scaled.times[j])
            fail(state, router, j, m)
            if not hand_out(state, router, chooser, m, now_s):
                return False
    return True


@inner_kernel
def switch(state, scaled, j, now_s):
    """A lane's row goes on by itself: the step in progress is lost, and what runs is queued again without its KV."""
    requests, one = state.requests, state.instances[j]
    count = one[OUTSTANDING]
    first, last = throw_out(state, j)
    exchange_forms(state.reals[j], scaled.times[j])
    one[QUEUE_HEAD], one[QUEUE_TAIL], one[QUEUED] = first, last, count
    one[TOKENS] = 0
    r = first
    while r >= 0:
        one[TOKENS] += requests[r, NEED] + requests[r, OUTPUT] - requests[r, MADE]
        r = requests[r, NEXT]
    if count > 0:
        state.reals[j, BOUNDARY] = now_s
