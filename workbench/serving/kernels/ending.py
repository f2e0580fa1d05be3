"""The end of a step: tokens are made, prompts are complete, requests are done."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.decoding import begin_decoding, count_up
from workbench.serving.kernels.finishing import popped
from workbench.serving.kernels.layout import (
    ASKING,
    BLOCK,
    BOUNDARY,
    BUSY_S,
    CACHE,
    CHARGED,
    CHUNK,
    CLOCK,
    CONTEXT,
    DECODED,
    DECODING,
    DONE,
    FINISH,
    FINISH_S,
    FIRST_TOKEN_S,
    FREE,
    GOING,
    HELD,
    ITERATION,
    MADE,
    NEED,
    NEXT_PREFILL,
    OUTPUT,
    OUTSTANDING,
    PHASES,
    PREFILL,
    PREFILL_HEAD,
    PREFILLS,
    RESERVE,
    ROLE,
    ROOT,
    STATUS,
    STEP_BUDGET,
    STEP_DECODES,
    STEP_PREFILLS,
    STEP_S,
    STORED,
    TOKENS,
)
from workbench.serving.kernels.leaving import leave
from workbench.serving.kernels.lists import stop_prefill, stop_running
from workbench.serving.kernels.logs import log_end
from workbench.serving.kernels.prefix_cache import keep_prefix
from workbench.serving.kernels.segments import close_segment, open_segment


@inner_kernel
def finish(state, one, r, now_s):
    """A running request is done: its blocks are free again."""
    state.requests[r, STATUS] = DONE
    state.moments[r, FINISH_S] = now_s
    one[FREE] += state.requests[r, HELD]
    stop_running(state.requests, one, r)
    one[OUTSTANDING] -= 1


@inner_kernel
def end(state, j):
    """End the step in progress of an instance at its time; the next one is not started yet."""
    requests, one, times = state.requests, state.instances[j], state.reals[j]
    now_s, iteration = times[BOUNDARY], one[ITERATION]
    log_end(state, one, now_s)
    times[BUSY_S] += times[STEP_S]
    one[ITERATION] = iteration + 1
    one[GOING], one[CHARGED], one[DECODED] = 0, 0, one[STEP_DECODES]
    if one[STEP_DECODES] == 1:
        one[CLOCK] += 1
        one[CONTEXT] += one[DECODING]
        one[TOKENS] -= one[DECODING]
        while one[ROOT] >= 0 and requests[one[ROOT], FINISH] == one[CLOCK]:
            r = one[ROOT]
            one[ROOT] = popped(requests, r)
            count_up(state, one, r)
            close_segment(state, j, r)
            finish(state, one, r, now_s)
        if one[RESERVE] == 0:
            one[ASKING] = state.cells[one[PHASES] + (-one[CLOCK]) % one[BLOCK]]
    if one[STEP_PREFILLS] > 0:
        _end_prefills(state, j, one, now_s, iteration)


@inner_kernel
def _end_prefills(state, j, one, now_s, iteration):
    requests = state.requests
    left, before, r = one[STEP_BUDGET], np.int64(-1), one[PREFILL_HEAD]
    for _ in range(one[STEP_PREFILLS]):
        after = requests[r, NEXT_PREFILL]
        missing = requests[r, NEED] - requests[r, STORED]
        k = min(one[CHUNK], missing, left)
        left -= k
        requests[r, STORED] += k
        one[TOKENS] -= k
        if k == missing:
            stop_prefill(requests, one, before, r)
            _complete(state, j, one, r, now_s, iteration)
        else:
            before = r
        r = after


@inner_kernel
def _complete(state, j, one, r, now_s, iteration):
    """A prompt is stored: the step gives its next token."""
    requests = state.requests
    requests[r, PREFILL] = j
    if one[CACHE] > 0:
        keep_prefix(state, one, r)
    if requests[r, OUTPUT] > 0:
        open_segment(requests, r, iteration, np.int64(requests[r, MADE]))
        requests[r, MADE] += 1
        one[TOKENS] -= 1
        if np.isnan(state.moments[r, FIRST_TOKEN_S]):
            state.moments[r, FIRST_TOKEN_S] = now_s
    if requests[r, MADE] == requests[r, OUTPUT]:
        close_segment(state, j, r)
        finish(state, one, r, now_s)
        return
    if one[ROLE] == PREFILLS:
        leave(state, j, one, r)
        return
    begin_decoding(state, one, r)
    if one[RESERVE] == 0 and requests[r, STORED] % one[BLOCK] == 0:
        one[ASKING] += 1
