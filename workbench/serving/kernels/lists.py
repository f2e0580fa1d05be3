"""Linked lists through the rows of requests: queues, the running ones, those with a prompt to process; all by rank."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.layout import (
    HEAD,
    NEXT,
    NEXT_PREFILL,
    PREFILL_HEAD,
    PREFILL_TAIL,
    PREFILLING,
    PREVIOUS,
    QUEUE_HEAD,
    QUEUE_TAIL,
    QUEUED,
    RANK,
    RUNNING,
    TAIL,
)


@inner_kernel
def merged(requests, a, a_last, b, b_last):
    """First and last of two lists made one by rank, in which those of the first list stand before their equals.

    Parameters:
        requests: int32 rows.
        a, a_last, b, b_last: first and last of each list, -1 where it is empty; linked forward, and in order of rank.
    """
    if a < 0:
        return b, b_last
    if b < 0:
        return a, a_last
    if requests[a_last, RANK] <= requests[b, RANK]:
        requests[a_last, NEXT] = b
        return a, b_last
    return _interleaved(requests, a, a_last, b, b_last)


@inner_kernel
def _interleaved(requests, a, a_last, b, b_last):
    first, last = np.int64(-1), np.int64(-1)
    while a >= 0 and b >= 0:
        if requests[a, RANK] <= requests[b, RANK]:
            r, a = a, np.int64(requests[a, NEXT])
        else:
            r, b = b, np.int64(requests[b, NEXT])
        if last < 0:
            first = r
        else:
            requests[last, NEXT] = r
        last = r
    requests[last, NEXT] = max(a, b)  # one of them is -1
    return first, a_last if a >= 0 else b_last


@inner_kernel
def queue_last(requests, one, r):
    """Put a request into an instance's queue, behind its equals."""
    requests[r, NEXT] = -1
    one[QUEUE_HEAD], one[QUEUE_TAIL] = merged(requests, one[QUEUE_HEAD], one[QUEUE_TAIL], r, r)
    one[QUEUED] += 1


@inner_kernel
def queue_first(requests, one, r):
    """Put a request into an instance's queue, before its equals."""
    requests[r, NEXT] = -1
    one[QUEUE_HEAD], one[QUEUE_TAIL] = merged(requests, r, r, one[QUEUE_HEAD], one[QUEUE_TAIL])
    one[QUEUED] += 1


@inner_kernel
def take_first(requests, one):
    """Take the first request out of an instance's queue, which is not empty."""
    r = one[QUEUE_HEAD]
    one[QUEUE_HEAD] = requests[r, NEXT]
    one[QUEUED] -= 1
    return r


@inner_kernel
def run_last(requests, one, r):
    """Enter a request among the running ones behind its equals, as the last admitted of them."""
    before = one[TAIL]
    while before >= 0 and requests[before, RANK] > requests[r, RANK]:
        before = requests[before, PREVIOUS]
    after = requests[before, NEXT] if before >= 0 else one[HEAD]
    requests[r, PREVIOUS], requests[r, NEXT] = before, after
    if before < 0:
        one[HEAD] = r
    else:
        requests[before, NEXT] = r
    if after < 0:
        one[TAIL] = r
    else:
        requests[after, PREVIOUS] = r
    one[RUNNING] += 1


@inner_kernel
def prefill_last(requests, one, r):
    """Enter a running request behind its equals among those with a prompt to process."""
    before, after = one[PREFILL_TAIL], np.int64(-1)
    if before >= 0 and requests[before, RANK] > requests[r, RANK]:
        before, after = after, one[PREFILL_HEAD]
        while requests[after, RANK] <= requests[r, RANK]:
            before, after = after, requests[after, NEXT_PREFILL]
    requests[r, NEXT_PREFILL] = after
    if before < 0:
        one[PREFILL_HEAD] = r
    else:
        requests[before, NEXT_PREFILL] = r
    if after < 0:
        one[PREFILL_TAIL] = r
    one[PREFILLING] += 1


@inner_kernel
def stop_running(requests, one, r):
    """Take a request out of the running ones; it is no longer in the list of prefills."""
    before, after = requests[r, PREVIOUS], requests[r, NEXT]
    if before < 0:
        one[HEAD] = after
    else:
        requests[before, NEXT] = after
    if after < 0:
        one[TAIL] = before
    else:
        requests[after, PREVIOUS] = before
    one[RUNNING] -= 1


@inner_kernel
def stop_prefill(requests, one, before, r):
    """Take a request out of the list of prefills; `before` is its predecessor there, -1 for none."""
    after = requests[r, NEXT_PREFILL]
    if before < 0:
        one[PREFILL_HEAD] = after
    else:
        requests[before, NEXT_PREFILL] = after
    if after < 0:
        one[PREFILL_TAIL] = before
    one[PREFILLING] -= 1


@inner_kernel
def stop_last_prefill(requests, one):
    """Take the last request out of the list of prefills."""
    before, r = np.int64(-1), one[PREFILL_HEAD]
    while requests[r, NEXT_PREFILL] >= 0:
        before, r = r, requests[r, NEXT_PREFILL]
    stop_prefill(requests, one, before, r)
