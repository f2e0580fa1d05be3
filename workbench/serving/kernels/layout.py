"""Where everything lies in the arrays of the event loop: rows of requests, rows of instances, the shared state."""

from typing import NamedTuple

import numpy as np

from workbench.references import by_reference

# One request is one row of int32; what is used together lies together.
PROMPT, OUTPUT = 0, 1
MADE, STORED = 2, 3
"""Tokens emitted and stored; of a request that decodes, those at the decode clock `SINCE`."""
NEED = 4
"""Tokens whose prefill completes it: prompt and what was made before the last admission."""
NEXT, PREVIOUS = 5, 6
"""Neighbours in the one list it is in: the router's, a queue (forward only), or the running ones."""
NEXT_PREFILL = 7
LEFT, RIGHT, FINISH = 8, 9, 10
"""Its place in the heap of its instance, and the decode clock at which it is done; or its neighbours among the leaving
ones."""
SINCE = 11
"""Decode clock at which it began to count by itself; -1 while it does not decode or is left out."""
SEGMENT_FROM, SEGMENT_INDEX, SEGMENT_ROW = 12, 13, 14
"""The open segment: its first iteration (-1: none open) and token; the row of the last one closed (-1: none)."""
HELD = 15
"""KV blocks; of a request that decodes by itself they follow from its tokens."""
STATUS, INSTANCE, EVICTIONS, MOVES, REQUEST_MODEL = 16, 17, 18, 19, 20
RANK = 21
"""Lower ones stand first in every list that it is in, except those who are done first."""
PREFILL = 22
"""The instance that ended its latest prefill, -1 for none."""
IDS_AT, IDS, CACHED = 23, 24, 25
"""Where the ids of its hash blocks begin in `State.cells`, how many there are, and prompt tokens found in caches."""
FLOW = 26
"""The row of the flow that brings its KV to `INSTANCE`, -1 for none."""
VERSION, RESTARTS = 27, 28
"""The version of the weights on which it was admitted since its latest start, -1 if it was not; how often it started
anew with another one."""
REQUEST_SIZE = 29

# Its instants and its two random numbers, one row of float64.
ARRIVAL_S, FIRST_TOKEN_S, FINISH_S, WAIT_S, DRAW = 0, 1, 2, 3, 4
MOMENTS_SIZE = 6

# One instance is one row of int64. First what it is, as `Instances` has it.
LIMIT, SLOTS, BUDGET, CHUNK, BLOCK, BLOCKS, RESERVE, WHOLE, APART, CACHE, ROLE = range(11)
ROOM = 11
"""Tokens that fit in all its blocks."""
PHASES = 12
"""Where its histogram of phases begins in `State.cells`."""
CACHE_AT, CACHE_MASK = 13, 14
"""Where its prefix cache begins there, and by which bits of an id it looks for a chain, see `prefix_cache`."""
MODEL = 15
"""The line of the router that it takes requests from: the number of its model, unless it only decodes."""
# Then what it does.
UP, GOING, OUTSTANDING, TOKENS = 16, 17, 18, 19
"""Whether it is up, whether a step is in progress, requests given to it, tokens they still have to process."""
QUEUE_HEAD, QUEUE_TAIL, QUEUED = 20, 21, 22
HEAD, TAIL, RUNNING = 23, 24, 25
PREFILL_HEAD, PREFILL_TAIL, PREFILLING = 26, 27, 28
ROOT = 29
"""Top of the heap of those that decode: who is done first."""
DECODING, LEFT_OUT = 30, 31
"""Requests that take part in decode steps, and those that decode but are beyond the budget."""
CONTEXT, CLOCK = 32, 33
"""Tokens stored by those that decode; decode steps so far."""
FREE, ASKING, PEAK = 34, 35, 36
"""KV blocks that are free; requests that will ask for one at the next step start; most blocks ever used."""
ITERATION, PAGE, FIRST_PAGE, PLACE = 37, 38, 39, 40
"""Steps completed; the page of the log in use, the first one, and the place within the page."""
STEP_DECODES, STEP_PREFILLS, STEP_BUDGET, STEP_FINISHES = 41, 42, 43, 44
"""Of the step in progress: whether requests decode, how many prefill, with what budget; 1 if somebody finishes, 2 if
nobody does and it is not to end unseen."""
DECODED = 45
"""Whether requests decoded in the last step."""
BROKEN = 46
"""Whether the segments of some that decode were closed while they were left out."""
FAILED_STEPS = 47
CHARGED = 48
"""Whether all that decode have the blocks of the step in progress."""
HOLDS = 49
"""Whether it must stop before the end of a step in which somebody is done."""
CACHED_IDS, NEWEST, OLDEST = 50, 51, 52
"""Ids in its prefix cache, and the nodes of the one used last and of the one used longest ago."""
LEAVING_HEAD, LEAVING_TAIL, LEFT_NOW = 53, 54, 55
"""Of one that only prefills: those whose prompts are done and whose KV is still there, in that order, linked by `LEFT`
and `RIGHT`; the first of them that the router does not know of yet."""
COMING, LANDED, LANDED_HEAD, LANDED_TAIL = 56, 57, 58, 59
"""Of one that only decodes: how many it has blocks for whose KV is on its way, and those whose KV has come."""
WEIGHTS = 60
"""The version of its weights."""
STAYING = 61
"""Of one that only prefills: whether KV that is not on its way stays there."""
BATCH = 62
"""Of one that only prefills: most prompt tokens that it takes at a time, only when free; 0 takes any at any time."""
SEALED = 63
"""Whether what waits there was about to start, and blocks for the first were not free: nobody joins it any more."""
INSTANCE_SIZE = 64

IS_UP, FINISHING = 1, 2
"""What `UP` holds of one that is: any request may come, or only KV of its own version, since there is a newer one."""

COLOCATED, PREFILLS, DECODES = 0, 1, 2
"""What `ROLE` holds: it does both, it prefills only, it decodes what others have prefilled."""

# Its times and step-time coefficients, one row of float64.
BOUNDARY, STEP_S, BUSY_S = 0, 1, 2
"""When it acts next (end of its step, or its next start; infinity when idle), seconds of the step, of all steps."""
FORM, FORM_ROW = 3, 5
"""Where the coefficients begin, and how many there are in each of the two rows."""
REALS_SIZE = 13

# One line of the router: who waits, where the policy left off, and which are its instances.
ROUTER_HEAD, ROUTER_TAIL, CURSOR, BEGIN, BEHIND = 0, 1, 2, 3, 4
WAITING, WAITING_TOKENS = 5, 6
"""How many wait, and the tokens of their prefills."""
LATEST = 7
"""The newest version of the model's weights."""
LINE_SIZE = 8

# What all share.
PAGES_USED, ROWS_USED, JUMPS, ID_TOKENS, SENT_HEAD, SENT_TAIL = range(6)
"""Pages and rows of the logs in use, whether there may be jumps, tokens of one hash block, and the list of those whose
KV is to be sent."""
SHARED_SIZE = 6

LARGE = 2**62
"""More tokens than can be asked for; stands for any number."""

PAGE_STEPS = 511
"""Steps on one page of the log; the entry behind them is the number of the next page."""

DONE, REJECTED = 1, 2
"""What `status` holds; 0 is inside."""

# What the event loop says when it stops before the end.
FINISHED, PAGES_SHORT, ROWS_SHORT, BAD_CHOICE = 0, 1, 2, 3


@by_reference
class State(NamedTuple):
    """Requests, instances and logs.

    Attributes:
        requests: int32[n, 29] rows.
        moments: float64[n, 6] rows.
        instances: int64[N, 64] rows.
        reals: float64[N, 13] rows.
        cells: int32, what has no fixed size: the ids of all hash blocks, request after request; then for each paged
            instance a histogram of phases, of `block` entries; then the prefix caches.
        shared: int64[6].
        pages: float64[P, 512], ends of steps on pages chained per instance.
        rows: int64[R, 5], segments in the order in which they were closed.
    """

    requests: np.ndarray
    moments: np.ndarray
    instances: np.ndarray
    reals: np.ndarray
    cells: np.ndarray
    shared: np.ndarray
    pages: np.ndarray
    rows: np.ndarray


@by_reference
class Router(NamedTuple):
    """Who waits for an instance.

    Attributes:
        lines: int64[M, 8] rows; where instances have roles of their own, M more for those who wait to decode.
        members: int64[N], the instances of each line in index order, line after line.
        offer: int64[3, N] scratch, what a dispatch policy sees: places, outstanding requests, tokens.
        route: number of the dispatch policy.
    """

    lines: np.ndarray
    members: np.ndarray
    offer: np.ndarray
    route: int
