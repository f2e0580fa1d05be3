"""Requests that decode by themselves: while nothing changes the batch, a clock counts for all of them.

A request remembers the clock at which it began, so its tokens are what it had then and the clock's steps since. Its
phase, stored tokens less clock modulo the block, stays the same while it decodes: a histogram of phases tells how many
requests fill their last block at any clock, without a look at them.
"""

from workbench.jit import inner_kernel
from workbench.serving.kernels.finishing import pushed
from workbench.serving.kernels.layout import (
    ASKING,
    BLOCK,
    BROKEN,
    CHARGED,
    CLOCK,
    CONTEXT,
    DECODED,
    DECODING,
    FINISH,
    HEAD,
    HELD,
    ITERATION,
    LEFT_OUT,
    MADE,
    NEED,
    NEXT,
    OUTPUT,
    PHASES,
    RESERVE,
    ROOT,
    SEGMENT_FROM,
    SINCE,
    STORED,
)


@inner_kernel
def begin_decoding(state, one, r):
    """Let a request whose prompt is stored take part in decode steps."""
    requests = state.requests
    clock, stored = one[CLOCK], requests[r, STORED]
    requests[r, SINCE] = clock
    requests[r, FINISH] = clock + requests[r, OUTPUT] - requests[r, MADE]
    one[ROOT] = pushed(requests, one[ROOT], r)
    one[DECODING] += 1
    one[CONTEXT] += stored
    if one[RESERVE] == 0:
        state.cells[one[PHASES] + (stored - clock) % one[BLOCK]] += 1


@inner_kernel
def count_up(state, one, r):
    """Bring the tokens of a request that decodes up to now, and take it out of what counts by itself.

    The heap is left to the caller: it pops this request, or forgets all.
    """
    requests = state.requests
    clock = one[CLOCK]
    steps = clock - requests[r, SINCE]
    requests[r, SINCE] = -1
    requests[r, MADE] += steps
    requests[r, STORED] += steps
    stored = requests[r, STORED]
    one[DECODING] -= 1
    one[CONTEXT] -= stored
    if one[RESERVE] == 0:
        block = one[BLOCK]
        state.cells[one[PHASES] + (stored - clock) % block] -= 1
        # A block just filled is followed by another one at the next step start, unless that has been given already.
        newly = one[DECODED] == 1 or requests[r, SEGMENT_FROM] == one[ITERATION] - 1
        asks = stored % block == 0 and newly and one[CHARGED] == 0
        requests[r, HELD] = stored // block + (0 if asks else 1)


@inner_kernel
def count_all_up(state, one):
    """Bring all that decode up to now; none counts by itself any more."""
    requests = state.requests
    r = one[HEAD]
    while r >= 0:
        if requests[r, SINCE] >= 0:
            count_up(state, one, r)
        r = requests[r, NEXT]
    one[ROOT] = -1
    one[ASKING] = 0


@inner_kernel
def begin_all(state, one):
    """Let all whose prompts are stored decode by themselves again."""
    requests = state.requests
    r = one[HEAD]
    while r >= 0:
        if requests[r, SINCE] < 0 and requests[r, STORED] >= requests[r, NEED]:
            begin_decoding(state, one, r)
        r = requests[r, NEXT]
    if one[LEFT_OUT] > 0:
        one[LEFT_OUT], one[BROKEN] = 0, 1  # their segments were closed
