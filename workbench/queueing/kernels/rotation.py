"""One server that walks round several queues."""

import numpy as np

from workbench.jit import kernel
from workbench.queueing.policy.rotation import allowance, idle_walk, next_queue


@kernel
def rotation(arrival_s, queue, queues, service_s, switch_s, discipline, start_s, finish_s):
    """Fill start and finish of every customer, arrivals in order; the server stands at queue 0 at time 0.

    Parameters:
        arrival_s, service_s: float64[n]. queue: int64[n], which queue each joins, of `queues`.
        switch_s: float64[m], time of each walk to the next queue, used over and over in order.
        discipline: number of a policy, see `policy.DISCIPLINES`.

    The server walks on past empty queues; `idle_walk` takes it through the time in which nobody is there.
    """
    head, end = np.zeros(queues, dtype=np.int64), np.zeros(queues, dtype=np.int64)
    for customer in range(queue.size):
        end[queue[customer]] += 1
    for place in range(1, queues):
        end[place] += end[place - 1]
        head[place] = end[place - 1]
    order, filled = np.empty(queue.size, dtype=np.int64), head.copy()
    for customer in range(queue.size):
        order[filled[queue[customer]]] = customer
        filled[queue[customer]] += 1
    here, walk, idle_visits = 0, 0, 0
    now = 0.0
    left = arrival_s.size
    while left > 0:
        waiting = 0
        if head[here] < end[here] and arrival_s[order[head[here]]] <= now:
            waiting = _arrived(arrival_s, order, head[here], end[here], now) - head[here]
        allowed = allowance(discipline, waiting)
        idle_visits = 0 if waiting else idle_visits + 1
        while allowed > 0 and head[here] < end[here] and arrival_s[order[head[here]]] <= now:
            customer = order[head[here]]
            start_s[customer] = now
            now += service_s[customer]
            finish_s[customer] = now
            head[here] += 1
            allowed -= 1
            left -= 1
        now += switch_s[walk]
        walk = walk + 1 if walk + 1 < switch_s.size else 0
        here = next_queue(here, queues)
        if idle_visits >= queues and left > 0:
            soonest = _next_arrival(arrival_s, order, head, end)
            if soonest > now:
                now, here, walk = idle_walk(now, here, walk, soonest, queues, switch_s)
            idle_visits = 0


@kernel
def _arrived(arrival_s, order, low, high, now):
    """First place in order[low:high] whose customer has not arrived by `now`."""
    while low < high:
        middle = (low + high) // 2
        if arrival_s[order[middle]] <= now:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _next_arrival(arrival_s, order, head, end):
    soonest = np.inf
    for place in range(end.size):
        if head[place] < end[place]:
            soonest = min(soonest, arrival_s[order[head[place]]])
    return soonest


def rotation_slow(arrival_s, queue, queues, service_s, switch_s, discipline):
    """Visit after visit over plain lists, for walks that take time; rows (start, finish)."""
    rows = [None] * len(arrival_s)
    lines = [[i for i, q in enumerate(queue) if q == place] for place in range(queues)]
    now, visit = 0.0, 0
    while any(lines):
        line = lines[visit % queues]
        found = sum(arrival_s[i] <= now for i in line)
        most = {0: len(line), 1: found, 2: 1}[discipline]
        while most and line and arrival_s[line[0]] <= now:
            customer = line.pop(0)
            rows[customer] = (now, now + service_s[customer])
            now += service_s[customer]
            most -= 1
        now += switch_s[visit % len(switch_s)]
        visit += 1
    return rows
