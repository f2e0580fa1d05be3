"""Segments: runs of consecutive iterations in which a request emitted one token each."""

from workbench.jit import inner_kernel
from workbench.serving.kernels.layout import MADE, ROWS_USED, SEGMENT_FROM, SEGMENT_INDEX, SEGMENT_ROW


@inner_kernel
def open_segment(requests, r, iteration, index):
    """From this iteration on a request emits a token in each; the first has this index."""
    requests[r, SEGMENT_FROM] = iteration
    requests[r, SEGMENT_INDEX] = index


@inner_kernel
def close_segment(state, j, r):
    """Log the open segment of a request on instance `j`, if there is one; its tokens must be counted up to now."""
    requests, rows = state.requests, state.rows
    iteration, index = requests[r, SEGMENT_FROM], requests[r, SEGMENT_INDEX]
    if iteration < 0:
        return
    requests[r, SEGMENT_FROM] = -1
    count = requests[r, MADE] - index
    if count <= 0:
        return
    last = requests[r, SEGMENT_ROW]
    if last >= 0 and rows[last, 3] == j and rows[last, 4] + rows[last, 2] == iteration:
        rows[last, 2] += count  # it came back to where it was, and no step happened there in between
        return
    row = state.shared[ROWS_USED]
    rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3], rows[row, 4] = r, index, count, j, iteration
    requests[r, SEGMENT_ROW] = row
    state.shared[ROWS_USED] = row + 1
