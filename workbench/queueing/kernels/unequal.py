"""Unequal servers behind one queue, each customer to the fastest free one."""

import numpy as np

from workbench.jit import kernel
from workbench.queueing.kernels.heaps import replace_smallest
from workbench.queueing.policy.dispatch import pick_fastest_free


@kernel
def fastest_free_starts(arrival_s, work, rate_per_s, slots, start_s, finish_s, server):
    """Fill start, finish and class of every customer; classes in the order of dispatch, arrivals in order.

    A customer that finds no free slot waits for the one that is free first, whichever class it is of; among slots free
    at the same instant the faster one is taken. `work` is in services of rate 1/s: service takes work / rate.
    """
    first = np.zeros(slots.size + 1, dtype=np.int64)
    for place in range(slots.size):
        first[place + 1] = first[place] + slots[place]
    free_s = np.full(first[slots.size], -np.inf)
    next_free_s = np.full(slots.size, -np.inf)
    for customer in range(arrival_s.size):
        start = arrival_s[customer]
        place = pick_fastest_free(start, next_free_s)
        if place < 0:
            place = 0
            for other in range(1, slots.size):
                if next_free_s[other] < next_free_s[place]:
                    place = other
            start = next_free_s[place]
        start_s[customer] = start
        finish_s[customer] = start + work[customer] / rate_per_s[place]
        server[customer] = place
        heap = free_s[first[place] : first[place + 1]]
        replace_smallest(heap, finish_s[customer])
        next_free_s[place] = heap[0]


def fastest_free_slow(arrival_s, work, rate_per_s, slots):
    """Slot by slot: the free one that is fastest, else the one free first; rows (start, finish, class)."""
    kinds = [place for place, count in enumerate(slots) for _ in range(count)]
    free_s, rows = [float("-inf")] * len(kinds), []
    for arrival, amount in zip(arrival_s, work, strict=True):
        free = [slot for slot in range(len(kinds)) if free_s[slot] <= arrival]
        slot = free[0] if free else min(range(len(kinds)), key=lambda s: free_s[s])
        start = max(arrival, free_s[slot])
        free_s[slot] = start + amount / rate_per_s[kinds[slot]]
        rows.append((start, free_s[slot], kinds[slot]))
    return rows
