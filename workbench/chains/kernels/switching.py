"""The event loop of chains that are formed anew from time to time, without interrupting a job.

At a switch the old chains take no more jobs. A server belongs to the new chains once its last old job has left and the
blocks it lacks are loaded; a new chain takes jobs once all its servers do. Until then jobs wait in the central line.
At one instant completions come first (fastest chains first), then new chains that are ready, then switches, then
arrivals.
"""

from typing import NamedTuple

import numpy as np

from workbench.chains.kernels.finishing import first_to_finish, has_finished, will_finish
from workbench.chains.kernels.layout import DONE, STUCK, Jobs, Lines
from workbench.jit import inner_kernel, kernel


class Epochs(NamedTuple):
    """Sets of chains one after the other.

    Attributes:
        switch_s: float64[E], when each set takes over; the first at -infinity.
        begin: int64[E + 1], where the chains of each set begin among all chains.
        load_s: float64[E, J], seconds that each server then loads blocks it lacks.
        server, hops: int64[K, W] and int64[K], servers of each chain of each set.
        ready_s: float64[K] to fill: when each chain takes its first job.
        busy_s: float64[J], zeros at the start: when the last job that is known leaves each server.
    """

    switch_s: np.ndarray
    begin: np.ndarray
    load_s: np.ndarray
    server: np.ndarray
    hops: np.ndarray
    ready_s: np.ndarray
    busy_s: np.ndarray


@kernel
def run_switching(jobs: Jobs, lines: Lines, epochs: Epochs):
    """Serve all jobs, each by the fastest free chain of the set in power; see `layout` for how it ends."""
    epoch, job, centre = 0, 0, lines.slots.size
    for k in range(epochs.begin[0], epochs.begin[1]):
        epochs.ready_s[k] = -np.inf
    while True:
        k = first_to_finish(lines)
        done_s = lines.next_s[k]
        opening, ready_s = _next_ready(epochs, epoch)
        switch_s = epochs.switch_s[epoch + 1] if epoch + 1 < epochs.switch_s.size else np.inf
        came_s = jobs.arrival_s[job] if job < jobs.arrival_s.size else np.inf
        now_s = min(done_s, ready_s, switch_s, came_s)
        if came_s == np.inf and lines.waiting[0] == 0 and done_s == np.inf:
            return DONE
        if now_s == np.inf:
            return STUCK
        if done_s == now_s:
            has_finished(lines, k, lines.running[k])
            lines.running[k] -= 1
        elif ready_s == now_s:
            epochs.ready_s[opening] = -np.inf
        elif switch_s == now_s:
            epoch += 1
            _take_over(epochs, epoch, now_s)
        else:
            if lines.head[centre] < 0:
                lines.head[centre] = job
            else:
                jobs.behind[lines.tail[centre]] = job
            lines.tail[centre] = job
            lines.waiting[0] += 1
            job += 1
        _hand_out(jobs, lines, epochs, epoch, now_s)


@inner_kernel
def _next_ready(epochs, epoch):
    """The chain of the set in power that opens next, and when; those that are open bear -infinity."""
    found, found_s = -1, np.inf
    for k in range(epochs.begin[epoch], epochs.begin[epoch + 1]):
        if -np.inf < epochs.ready_s[k] < found_s:
            found, found_s = k, epochs.ready_s[k]
    return found, found_s


@inner_kernel
def _take_over(epochs, epoch, now_s):
    """Work out when each chain of a new set opens. Servers load once their last job has left."""
    for j in range(epochs.busy_s.size):
        epochs.busy_s[j] = max(now_s, epochs.busy_s[j]) + epochs.load_s[epoch, j]
    for k in range(epochs.begin[epoch], epochs.begin[epoch + 1]):
        ready_s = now_s
        for hop in range(epochs.hops[k]):
            ready_s = max(ready_s, epochs.busy_s[epochs.server[k, hop]])
        epochs.ready_s[k] = ready_s


@inner_kernel
def _hand_out(jobs, lines, epochs, epoch, now_s):
    centre = lines.slots.size
    while lines.waiting[0] > 0:
        chosen = -1
        for k in range(epochs.begin[epoch], epochs.begin[epoch + 1]):
            if epochs.ready_s[k] == -np.inf and lines.running[k] < lines.slots[k]:
                chosen = k
                break
        if chosen < 0:
            return
        job = lines.head[centre]
        lines.head[centre] = jobs.behind[job]
        lines.waiting[0] -= 1
        jobs.chain[job], jobs.start_s[job] = chosen, now_s
        service_s = 0.0
        for f in range(jobs.work.shape[1]):
            service_s += jobs.work[job, f] * lines.seconds[chosen, f]
        finish_s = now_s + service_s
        jobs.finish_s[job] = finish_s
        will_finish(lines, chosen, lines.running[chosen], finish_s)
        lines.running[chosen] += 1
        for hop in range(epochs.hops[chosen]):
            j = epochs.server[chosen, hop]
            epochs.busy_s[j] = max(epochs.busy_s[j], finish_s)
