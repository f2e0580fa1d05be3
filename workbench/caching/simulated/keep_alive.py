"""Nodes that keep one model alive: a SimPy process a request, copies as intervals of time."""

import math
from collections import deque

import numpy as np

from workbench.caching.model.keep_alive import KeepAlive, KeepAliveRun, whole_seconds
from workbench.caching.policy import COLD, HOT, expired, pick_node, start_kind, start_s
from workbench.queueing.simulated.clock import Clock

_FINISHES, _ARRIVES, _ASSIGNS = range(3)
"""Within a second: nodes finish, requests arrive, then waiting ones are dealt out."""


def simulate_keep_alive(arrival_s, cluster: KeepAlive) -> KeepAliveRun:
    """The run of `keep_alive`, by simulation."""
    arrival = whole_seconds(arrival_s)
    count = cluster.nodes
    free_from = np.zeros(count, np.int64)  # the second from which a node takes work; far off while it is busy
    gpu_since, memory_since, memory_from = (np.full(count, -math.inf) for _ in range(3))
    kind = np.empty(arrival.size, np.int8)
    begin, finish = np.empty_like(arrival), np.empty_like(arrival)
    held: list[tuple[float, float]] = []  # copies in host memory that are gone: from, to (both seconds counted)
    waiting: deque[int] = deque()
    clock = Clock()

    def last_s(node: int) -> float:
        return memory_since[node] + cluster.memory_keep_s

    def work(request: int, node: int):
        now = int(clock.now)
        # What expires at the end of the second before is gone; both copies count from their own instant.
        warm = not expired(now - 1, memory_since[node], cluster.memory_keep_s)
        how = start_kind(not expired(now - 1, gpu_since[node], cluster.gpu_keep_s), warm)
        if how == COLD and memory_since[node] > -math.inf:
            held.append((memory_from[node], last_s(node)))
            memory_since[node] = -math.inf
        if warm and cluster.from_last_use:
            memory_since[node] = math.inf  # while it is used it does not expire
        free_from[node] = np.iinfo(np.int64).max
        kind[request], begin[request] = how, now
        finish[request] = now + start_s(how, cluster.ssd_to_memory_s, cluster.memory_to_gpu_s, cluster.serve_s)
        yield clock.at(int(finish[request]), _FINISHES)
        now = int(clock.now)
        free_from[node], gpu_since[node] = now + 1, now
        if how == COLD:
            memory_from[node] = memory_since[node] = now
        elif cluster.from_last_use and memory_since[node] == math.inf:
            memory_since[node] = now
        yield clock.at(now + 1, _ASSIGNS)
        deal()

    def deal() -> None:
        now = int(clock.now)
        while waiting and (idle := free_from <= now).any():
            on_gpu = ~expired(now - 1, gpu_since, cluster.gpu_keep_s)
            in_memory = ~expired(now - 1, memory_since, cluster.memory_keep_s)
            node = pick_node(idle, on_gpu, in_memory, cluster.by_locality)
            clock.process(work(waiting.popleft(), node))
            free_from[node] = np.iinfo(np.int64).max

    def meet(request: int) -> None:
        waiting.append(request)
        clock.process(turn())

    def turn():
        yield clock.at(clock.now, _ASSIGNS)
        deal()

    clock.process(clock.arrivals(arrival, _ARRIVES, meet))
    clock.run()
    seconds = int(finish.max()) + 1
    held += [(memory_from[node], last_s(node)) for node in range(count) if memory_since[node] > -math.inf]
    return KeepAliveRun(kind, begin, finish, seconds, *_totals(held, kind, begin, finish, seconds))


def _totals(held, kind, begin, finish, seconds: int) -> tuple[int, int]:
    """Seconds with more copies than nodes serving from their GPU, and seconds of copies."""
    change = np.zeros(seconds + 1, np.int64)
    copy_s = 0
    for first, last in held:
        first, after = int(first), int(min(last + 1, seconds))
        change[first] += 1
        change[after] -= 1
        copy_s += after - first
    for request in np.flatnonzero(kind == HOT):
        change[begin[request]] -= 1
        change[finish[request]] += 1
    return int((np.cumsum(change)[:seconds] > 0).sum()), copy_s
