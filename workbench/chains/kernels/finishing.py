"""Finish times of the jobs in service on each chain, in heaps that grow and shrink."""

import numpy as np

from workbench.jit import inner_kernel


@inner_kernel
def will_finish(lines, k, running, finish_s):
    """Add a finish time to the heap of chain k, which holds `running` of them."""
    heap, place = lines.finishes[lines.begin[k] : lines.begin[k] + lines.slots[k]], running
    while place > 0:
        parent = (place - 1) // 2
        if heap[parent] <= finish_s:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = finish_s
    lines.next_s[k] = heap[0]


@inner_kernel
def has_finished(lines, k, running):
    """Take the earliest finish time out of the heap of chain k, which holds `running` of them."""
    heap = lines.finishes[lines.begin[k] : lines.begin[k] + lines.slots[k]]
    size, place = running - 1, 0
    moved_s = heap[size]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= moved_s:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = moved_s
    lines.next_s[k] = heap[0] if size > 0 else np.inf


@inner_kernel
def first_to_finish(lines):
    """The chain whose next job is done first, of equal ones the fastest."""
    first = 0
    for k in range(1, lines.next_s.size):
        if lines.next_s[k] < lines.next_s[first]:
            first = k
    return first
