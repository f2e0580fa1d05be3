"""The log of step ends, on pages that the instances take from one pool, and what it becomes after the run."""

import numpy as np

from workbench.jit import inner_kernel, lean_kernel
from workbench.serving.kernels.layout import (
    FIRST_PAGE,
    ITERATION,
    PAGE,
    PAGE_STEPS,
    PAGES_SHORT,
    PAGES_USED,
    PLACE,
    ROWS_SHORT,
    ROWS_USED,
)


@inner_kernel
def shortage(state, one, rows):
    """Which log has no room for one more step of an instance and so many more rows, 0 for none."""
    if one[PLACE] == PAGE_STEPS and state.shared[PAGES_USED] == state.pages.shape[0]:
        return PAGES_SHORT
    if state.shared[ROWS_USED] + rows > state.rows.shape[0]:
        return ROWS_SHORT
    return 0


@inner_kernel
def log_end(state, one, end_s):
    """Write the end of a step down; there must be room."""
    place = one[PLACE]
    if place == PAGE_STEPS:
        page = state.shared[PAGES_USED]
        state.shared[PAGES_USED] = page + 1
        if one[PAGE] < 0:
            one[FIRST_PAGE] = page
        else:
            state.pages[one[PAGE], PAGE_STEPS] = page
        one[PAGE] = page
        place = 0
    state.pages[one[PAGE], place] = end_s
    one[PLACE] = place + 1


@lean_kernel
def unroll(instances, pages, iteration_at, out_s):
    """Lay the pages of all instances out one after another, from the offsets in `iteration_at`."""
    for j in range(instances.shape[0]):
        at, page, left = iteration_at[j], instances[j, FIRST_PAGE], instances[j, ITERATION]
        while left > 0:
            count = min(left, PAGE_STEPS)
            for k in range(count):
                out_s[at + k] = pages[page, k]
            at, left = at + count, left - count
            if left > 0:
                page = int(pages[page, PAGE_STEPS])


@lean_kernel
def sort_rows(rows, used, place, out):
    """Order segments by request; those of one request keep their order.

    Parameters:
        rows: int64[R, 5] as closed, of which `used` count.
        place: int64[n + 1], zeros; scratch.
        out: int64[used, 5].
    """
    for k in range(used):
        place[rows[k, 0] + 1] += 1
    for r in range(1, place.size):
        place[r] += place[r - 1]
    for k in range(used):
        r = rows[k, 0]
        for column in range(5):
            out[place[r], column] = rows[k, column]
        place[r] += 1


def valid(segments: np.ndarray, made: np.ndarray) -> np.ndarray:
    """The segments since the latest start of each request: all from the last one with its first token on.

    Parameters:
        segments: int64[k, 5], all that were logged, request by request and each request's in order.
        made: int64[n], tokens since the latest start.
    """
    first = np.flatnonzero(segments[:, 1] == 0)
    begins = np.zeros(made.size, np.int64)
    begins[segments[first, 0]] = first  # of several the last one counts
    request = segments[:, 0]
    return segments[(np.arange(len(segments)) >= begins[request]) & (made[request] > 0)]


def grown(array: np.ndarray) -> np.ndarray:
    """The same rows with as much room again."""
    larger = np.empty((2 * array.shape[0], *array.shape[1:]), array.dtype)
    larger[: array.shape[0]] = array
    return larger
