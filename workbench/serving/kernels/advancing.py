"""Bring one instance up to an instant: between events from outside, instances do not see each other.

Steps that only decode and change no batch are jumped over: their bookkeeping is a few additions, whatever the batch,
but their times are added one by one as in the long form, so that the sums are the same bit for bit.
"""

from workbench.jit import inner_kernel
from workbench.serving.kernels.blocks import blocks_to_admit
from workbench.serving.kernels.ending import end
from workbench.serving.kernels.layout import (
    ASKING,
    BLOCK,
    BLOCKS,
    BOUNDARY,
    BUSY_S,
    CLOCK,
    CONTEXT,
    DECODED,
    DECODING,
    FINISH,
    FORM,
    FORM_ROW,
    FREE,
    GOING,
    HOLDS,
    ITERATION,
    JUMPS,
    LANDED,
    PAGE,
    PAGE_STEPS,
    PEAK,
    PHASES,
    PLACE,
    PREFILLING,
    QUEUE_HEAD,
    QUEUED,
    RANK,
    RESERVE,
    ROOT,
    RUNNING,
    SLOTS,
    STEP_DECODES,
    STEP_FINISHES,
    STEP_S,
    TAIL,
    TOKENS,
    WHOLE,
)
from workbench.serving.kernels.logs import shortage
from workbench.serving.kernels.starting import start


@inner_kernel
def advance(state, j, to_s):
    """Do everything on instance `j` that happens before `to_s`; 0, or which log is too short to go on.

    An instance that holds stops before the end of a step in which somebody is done.
    """
    one, times = state.instances[j], state.reals[j]
    while times[BOUNDARY] < to_s:
        short = shortage(state, one, one[RUNNING])
        if short != 0:
            return short
        if one[GOING] == 1:
            if (
                state.shared[JUMPS] == 1
                and one[STEP_DECODES] == 1
                and one[STEP_FINISHES] == 0
                and nobody_comes(state, one)
            ):
                jump(state, j, to_s)
                if not times[BOUNDARY] < to_s:
                    break
            if one[HOLDS] == 1 and one[STEP_FINISHES] > 0:
                break
            short = shortage(state, one, one[RUNNING])
            if short != 0:
                return short
            end(state, j)
        start(state, j, times[BOUNDARY])
    return 0


@inner_kernel
def nobody_comes(state, one):
    """Whether the batch stays as it is until somebody is done: no prompt to process, no one who could be admitted.

    Some requests decode now.
    """
    if one[PREFILLING] > 0 or one[LANDED] > 0:
        return False
    if one[QUEUED] == 0 or one[WHOLE] == 1:
        return True
    r = one[QUEUE_HEAD]
    if state.requests[r, RANK] < state.requests[one[TAIL], RANK]:
        return False
    return one[RUNNING] >= one[SLOTS] or blocks_to_admit(state.requests, one, r) > one[FREE]


@inner_kernel
def jump(state, j, to_s):
    """End decode steps and start the next ones until one would do more, or ends at `to_s` or later, or fills the page.

    A step in progress that is left is one that the long form has to end, or that ends at `to_s` or later.
    """
    one, times = state.instances[j], state.reals[j]
    last = state.requests[one[ROOT], FINISH] - 1  # the clock at which somebody is done with the next step
    clock, context, batch = one[CLOCK], one[CONTEXT], one[DECODING]
    paged, block = one[RESERVE] == 0, one[BLOCK]
    free, first = one[FREE], one[PHASES]
    phase = (-clock) % block
    page, place = one[PAGE], one[PLACE]
    boundary, seconds, busy = times[BOUNDARY], times[STEP_S], times[BUSY_S]
    # Without prompts their parts of the step time are plus 0.0, and the part of the batch does not change.
    constant0, constant1 = times[FORM], times[FORM + FORM_ROW]
    slope0, slope1 = times[FORM + 3], times[FORM + FORM_ROW + 3]
    part0, part1 = times[FORM + 4] * float(batch), times[FORM + FORM_ROW + 4] * float(batch)
    begun = clock
    while boundary < to_s and clock < last and place < PAGE_STEPS:
        if paged:
            phase = phase - 1 if phase > 0 else block - 1
            blocks = state.cells[first + phase]
            if blocks > free:
                break
            free -= blocks
        state.pages[page, place] = boundary
        place += 1
        busy += seconds
        clock += 1
        context += batch
        stored = float(context)
        row0 = (constant0 + slope0 * stored) + part0
        row1 = (constant1 + slope1 * stored) + part1
        seconds = row0 if row0 > row1 else row1
        boundary = boundary + seconds
    steps = clock - begun
    if steps == 0:
        return
    one[CLOCK], one[CONTEXT], one[PLACE] = clock, context, place
    one[ITERATION] += steps
    one[TOKENS] -= steps * batch
    one[DECODED], one[ASKING] = 1, 0
    one[FREE] = free
    one[PEAK] = max(one[PEAK], one[BLOCKS] - free)
    one[STEP_FINISHES] = 1 if clock == last else 0
    times[BOUNDARY], times[STEP_S], times[BUSY_S] = boundary, seconds, busy
