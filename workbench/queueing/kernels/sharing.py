"""Jobs that run at once and slow each other down: processor sharing, and batches whose steps grow with their size."""

import math

import numpy as np

from workbench.jit import kernel
from workbench.queueing.kernels.heaps import pop, push


@kernel
def shared_service(arrival_s, work, progress_per_s, places, start_s, finish_s):
    """Fill start and finish of every job, arrivals in order; NaN for a job that finds no place.

    Parameters:
        arrival_s, work: float64[n], work in any unit.
        progress_per_s: float64[B]: work done per second on each job when 1 to B run; the others wait in order.
        places: most jobs inside, running or waiting.

    All running jobs progress alike, so each ends when the work done on any one job since the start has grown by its
    own: one running total and a heap of the totals at which jobs end, instead of a remainder for every job.
    """
    count = arrival_s.size
    total_at_end, job = np.empty(count), np.empty(count, dtype=np.int64)
    queue = np.empty(count, dtype=np.int64)
    running, first, last = 0, 0, 0
    now, total = 0.0, 0.0
    arrived = 0
    while arrived < count or running > 0:
        end = np.inf
        if running:
            end = now + max(0.0, total_at_end[0] - total) / progress_per_s[running - 1]
        if arrived == count or end <= arrival_s[arrived]:
            now, total = end, total_at_end[0]
            finish_s[job[0]] = now
            pop(total_at_end, job, running)
            running -= 1
        else:
            if running:
                total += (arrival_s[arrived] - now) * progress_per_s[running - 1]
            now = arrival_s[arrived]
            if running + last - first < places:
                queue[last] = arrived
                last += 1
            else:
                start_s[arrived], finish_s[arrived] = math.nan, math.nan
            arrived += 1
        if running == 0:
            total = 0.0
        while first < last and running < progress_per_s.size:
            start_s[queue[first]] = now
            push(total_at_end, job, running, total + work[queue[first]], queue[first])
            running += 1
            first += 1


def shared_service_slow(arrival_s, work, progress_per_s, places):
    """Every job with its own remaining work, cut down event by event; rows (start, finish)."""
    rows = [[math.nan, math.nan] for _ in arrival_s]
    left, waiting, now = {}, [], 0.0
    coming = list(range(len(arrival_s)))
    while coming or left:
        speed = progress_per_s[len(left) - 1] if left else 0.0
        ends = min(left.values()) / speed if left else math.inf
        gap = arrival_s[coming[0]] - now if coming else math.inf
        step = min(ends, gap)
        done = [job for job, rest in left.items() if ends <= gap and rest == min(left.values())]
        now = arrival_s[coming[0]] if gap < ends else now + ends
        left = {job: rest - step * speed for job, rest in left.items() if job not in done}
        for job in done:
            rows[job][1] = now
        if gap < ends:
            job = coming.pop(0)
            if len(left) + len(waiting) < places:
                waiting.append(job)
        while waiting and len(left) < len(progress_per_s):
            job = waiting.pop(0)
            left[job], rows[job][0] = work[job], now
    return rows
