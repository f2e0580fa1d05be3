"""Linked lists through the rows of requests: queues, the running ones, those with a prompt to process."""

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
    RUNNING,
    TAIL,
)


@inner_kernel
def queue_last(requests, one, r):
    """Put a request at the end of an instance's queue."""
    requests[r, NEXT] = -1
    if one[QUEUED] == 0:
        one[QUEUE_HEAD] = r
    else:
        requests[one[QUEUE_TAIL], NEXT] = r
    one[QUEUE_TAIL] = r
    one[QUEUED] += 1


@inner_kernel
def queue_first(requests, one, r):
    """Put a request at the front of an instance's queue."""
    if one[QUEUED] == 0:
        one[QUEUE_TAIL] = r
        requests[r, NEXT] = -1
    else:
        requests[r, NEXT] = one[QUEUE_HEAD]
    one[QUEUE_HEAD] = r
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
    """Enter a request as the last admitted, with its whole prompt to process."""
    requests[r, NEXT] = -1
    if one[RUNNING] == 0:
        one[HEAD] = r
        requests[r, PREVIOUS] = -1
    else:
        requests[one[TAIL], NEXT] = r
        requests[r, PREVIOUS] = one[TAIL]
    one[TAIL] = r
    one[RUNNING] += 1
    requests[r, NEXT_PREFILL] = -1
    if one[PREFILLING] == 0:
        one[PREFILL_HEAD] = r
    else:
        requests[one[PREFILL_TAIL], NEXT_PREFILL] = r
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
