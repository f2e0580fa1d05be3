"""What the step loop knows while it runs."""

from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.flights import ROW_COLUMNS
from workbench.blending.kernels.layout import LEFT, RIGHT
from workbench.blending.kernels.prefixes import Pool, new_pool
from workbench.jit import kernel

PRIVATE, DECODING, CONTEXT, SWAPPED, SWAPPED_FIRST = 0, 1, 2, 3, 4
"""Numbers: private KV tokens held; requests that decode; tokens of their prompts and outputs so far; requests swapped
out, and the first of them in their queue."""
NEWEST_DECODE, FRESH, DONE, SWAPS = 5, 6, 7, 8
"""The request that began to decode last; requests whose prompt was finished in this step; requests done; times somebody
was swapped out."""
NEXT = 10
"""The next place of the left end, and behind it that of the right end."""
PARTIAL, TODO = 12, 14
"""By side: the request whose prompt is being computed (-1: none) and its tokens to do."""
UNIT, MEMORY = 16, 18
"""By side: the unit it last stood in, and its share of the pool in tokens."""
HEAVY = 20
"""Requests in flight of units below the density of all."""
SIZE = 21
CREDIT, BUDGET, COMPUTE_LEFT, KV_LEFT = 0, 2, 4, 5
"""Floats: by side prompt tokens it may still have computed, and what it gets a step; work left by the estimates."""
FLOATS = 6

ADMITTED, FINISHED, COMPUTED, SIDE, ENDS, AT, DUE, SINCE_STEP, PLACE = range(9)
"""Columns of a request: step of admission and last step (-1: not yet); prompt tokens it computes; side; the step of its
last token; step in which the ring has it; its row's finish and since; its place in the order."""
REQUEST_COLUMNS = 9


class State(NamedTuple):
    """Numbers, floats, a row a request, the rows in flight by side, the lists, the prefix pool.

    Attributes:
        number: int64[SIZE]. real: float64[FLOATS]. request: int64[n, REQUEST_COLUMNS].
        rows, count: int64[2, n, 5], int64[2, 3], requests in flight by side, see `flights`.
        head, after, ahead: ring of decoding requests by step, see `flights`.
        older, newer: neighbours in the list of decoding requests by the step they began.
        fresh, leaving: int64[n], whose prompt, or output, was finished in this step.
        swapped: int64[n], the queue of those swapped out.
        pool: the shared segments.
    """

    number: np.ndarray
    real: np.ndarray
    request: np.ndarray
    rows: np.ndarray
    count: np.ndarray
    head: np.ndarray
    after: np.ndarray
    ahead: np.ndarray
    older: np.ndarray
    newer: np.ndarray
    fresh: np.ndarray
    leaving: np.ndarray
    swapped: np.ndarray
    pool: Pool


@kernel
def new_state(jobs, nodes, order, rules):
    """The state before the first step."""
    requests, served = jobs.prompt.size, order.request.size
    number, real = np.zeros(SIZE, np.int64), np.zeros(FLOATS)
    number[NEWEST_DECODE] = -1
    number[NEXT + RIGHT] = served - 1
    number[PARTIAL + LEFT] = number[PARTIAL + RIGHT] = -1
    number[UNIT + LEFT] = number[UNIT + RIGHT] = -1
    real[COMPUTE_LEFT], real[KV_LEFT] = rules.compute_left, rules.kv_left
    request = np.full((requests, REQUEST_COLUMNS), -1, np.int64)
    longest = 0
    for place in range(served):
        longest = max(longest, jobs.output[order.request[place]])
    links = np.full((4, requests), -1, np.int32)
    return State(
        number, real, request, np.zeros((2, served, ROW_COLUMNS), np.int64), np.zeros((2, 3), np.int64),
        np.full(longest + 2, -1, np.int32), links[0], links[1], links[2], links[3],
        np.zeros(served, np.int64), np.zeros(served, np.int64), np.zeros(served, np.int64), new_pool(nodes.parent.size),
    )  # fmt: skip
