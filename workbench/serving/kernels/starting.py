"""The start of a step: blocks, admissions, and who takes part."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.blocks import blocks_to_admit, evict_last, grow, take_blocks
from workbench.serving.kernels.decoding import begin_all, begin_decoding, count_all_up
from workbench.serving.kernels.layout import (
    APART,
    ARRIVAL_S,
    BOUNDARY,
    BROKEN,
    BUDGET,
    CACHE,
    CACHED,
    CHUNK,
    CLOCK,
    CONTEXT,
    DECODED,
    DECODING,
    FINISH,
    FREE,
    GOING,
    HEAD,
    HELD,
    ITERATION,
    LANDED,
    LEFT_OUT,
    MADE,
    NEED,
    NEXT,
    NEXT_PREFILL,
    OUTPUT,
    PREFILL_HEAD,
    PREFILLING,
    PREFILLS,
    QUEUE_HEAD,
    QUEUED,
    RANK,
    ROLE,
    ROOT,
    RUNNING,
    SEALED,
    SEGMENT_FROM,
    SINCE,
    SLOTS,
    STEP_BUDGET,
    STEP_DECODES,
    STEP_FINISHES,
    STEP_PREFILLS,
    STEP_S,
    STORED,
    TAIL,
    TOKENS,
    VERSION,
    WAIT_S,
    WEIGHTS,
    WHOLE,
)
from workbench.serving.kernels.leaving import join_landed
from workbench.serving.kernels.lists import prefill_last, run_last, take_first
from workbench.serving.kernels.prefix_cache import tokens_found
from workbench.serving.kernels.segments import close_segment, open_segment
from workbench.serving.kernels.step_time import step_seconds


@inner_kernel
def admit(state, j, one, now_s):
    """Admit from the head of the queue while slots and blocks are free, or others make way."""
    requests = state.requests
    if one[WHOLE] == 1 and one[RUNNING] > 0:
        return
    while one[QUEUED] > 0:
        r = one[QUEUE_HEAD]
        blocks = blocks_to_admit(requests, one, r)
        short = one[RUNNING] >= one[SLOTS] or blocks > one[FREE]
        if short and not make_way(state, j, one, r, blocks):
            break
        take_first(requests, one)
        take_blocks(one, blocks)
        requests[r, HELD], requests[r, VERSION] = blocks, one[WEIGHTS]
        run_last(requests, one, r)
        prefill_last(requests, one, r)
        if one[CACHE] > 0:
            cached = tokens_found(state, one, r)
            requests[r, STORED] = cached
            requests[r, CACHED] += cached
            one[TOKENS] -= cached
        if np.isnan(state.moments[r, WAIT_S]):
            state.moments[r, WAIT_S] = now_s - state.moments[r, ARRIVAL_S]


@inner_kernel
def make_way(state, j, one, r, blocks):
    """Evict those of higher rank than a request, the last one first, until a slot and blocks for it are free.

    Whether they are.
    """
    requests = state.requests
    if one[RUNNING] == 0 or requests[one[TAIL], RANK] <= requests[r, RANK]:
        return False
    count_all_up(state, one)
    short = True
    while short and one[RUNNING] > 0 and requests[one[TAIL], RANK] > requests[r, RANK]:
        evict_last(state, j, one)
        short = one[RUNNING] >= one[SLOTS] or blocks > one[FREE]
    begin_all(state, one)
    return not short


@inner_kernel
def leave_out(state, j, one):
    """Let the first of those that decode take part, as many as the budget allows, and leave the others out."""
    requests = state.requests
    count_all_up(state, one)
    one[LEFT_OUT] = 0
    r = one[HEAD]
    while r >= 0:
        if requests[r, STORED] >= requests[r, NEED]:
            if one[DECODING] < one[BUDGET]:
                begin_decoding(state, one, r)
            else:
                close_segment(state, j, r)
                one[LEFT_OUT] += 1
        r = requests[r, NEXT]
    one[BROKEN] = 1


@inner_kernel
def break_segments(state, j, one):
    """Close the segments of all that decode, because they sit this step out."""
    requests = state.requests
    r = one[HEAD]
    while r >= 0:
        if requests[r, SINCE] >= 0 and requests[r, SEGMENT_FROM] >= 0:
            # Closing counts what was made; what the clock has counted is added and taken back.
            steps = one[CLOCK] - requests[r, SINCE]
            requests[r, MADE] += steps
            close_segment(state, j, r)
            requests[r, MADE] -= steps
        r = requests[r, NEXT]
    one[BROKEN] = 1


@inner_kernel
def mend_segments(state, one):
    """Open the segments of all that take part in a decode step again."""
    requests = state.requests
    r = one[HEAD]
    while r >= 0:
        if requests[r, SINCE] >= 0 and requests[r, SEGMENT_FROM] < 0:
            open_segment(requests, r, one[ITERATION], requests[r, MADE] + one[CLOCK] - requests[r, SINCE])
        r = requests[r, NEXT]
    one[BROKEN] = 0


@inner_kernel
def start(state, j, now_s):
    """Start a step on an instance that is up and has none in progress; where nobody runs it stays idle."""
    requests, one, times = state.requests, state.instances[j], state.reals[j]
    times[BOUNDARY] = np.inf
    joined = one[LANDED]
    if joined > 0:
        join_landed(state, one)
    if one[RUNNING] == 0 and one[QUEUED] == 0:
        return
    if grow(state, j, one, joined):
        admit(state, j, one, now_s)
    one[SEALED] = 1 if one[RUNNING] == 0 else 0
    if one[RUNNING] == 0:  # KV on its way takes the blocks
        return

    prefill_only = one[APART] == 1 and one[PREFILLING] > 0
    one[STEP_DECODES] = 1 if one[DECODING] + one[LEFT_OUT] > 0 and not prefill_only else 0
    left, context, batch = one[BUDGET], 0, 0
    if one[STEP_DECODES] == 1:
        # After a step of prompts, or of one who is done, others are the first.
        changed = one[DECODED] == 0 or one[DECODING] < left
        if one[DECODING] > left or (one[LEFT_OUT] > 0 and changed):
            leave_out(state, j, one)
        if one[BROKEN] == 1:
            mend_segments(state, one)
        context, batch = one[CONTEXT], one[DECODING]
        left -= batch
    elif one[DECODING] > 0:
        break_segments(state, j, one)

    finishes = one[STEP_DECODES] == 1 and requests[one[ROOT], FINISH] == one[CLOCK] + 1
    one[STEP_BUDGET] = left
    prefills, prompt, pairs = 0, 0, 0
    r = one[PREFILL_HEAD] if one[PREFILLING] > 0 else -1
    while r >= 0 and left > 0:
        stored, missing = requests[r, STORED], requests[r, NEED] - requests[r, STORED]
        k = min(one[CHUNK], missing, left)
        left -= k
        prefills += 1
        prompt += k
        pairs += (stored + k) * (stored + k) - stored * stored
        finishes |= k == missing and (one[ROLE] == PREFILLS or requests[r, OUTPUT] - requests[r, MADE] <= 1)
        r = requests[r, NEXT_PREFILL]
    one[STEP_PREFILLS] = prefills
    one[STEP_FINISHES] = 1 if finishes else 0
    times[STEP_S] = step_seconds(times, prompt, pairs, context, batch + prefills)
    times[BOUNDARY] = now_s + times[STEP_S]
    one[GOING] = 1
