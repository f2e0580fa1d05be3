"""c servers, first come first served: Kiefer and Wolfowitz's recursion."""

import numpy as np

from workbench.jit import kernel
from workbench.queueing.kernels.heaps import replace_smallest


@kernel
def first_come(arrival_s, service_s, servers, start_s):
    """Fill float64[n] with the starts of service, arrivals in order: each customer takes the server that is free first.

    The recursion keeps when each server is next free; of these only the smallest is asked for, so they lie in a heap
    instead of in order (1955 they were sorted).
    """
    free_s = np.full(servers, -np.inf)
    for customer in range(arrival_s.size):
        start = max(arrival_s[customer], free_s[0])
        start_s[customer] = start
        replace_smallest(free_s, start + service_s[customer])


def first_come_slow(arrival_s, service_s, servers):
    """As a clerk would note it: sort the servers by when they are free, take the first."""
    free_s, starts = [float("-inf")] * servers, []
    for arrival, service in zip(arrival_s, service_s, strict=True):
        free_s.sort()
        starts.append(max(arrival, free_s[0]))
        free_s[0] = starts[-1] + service
    return starts
