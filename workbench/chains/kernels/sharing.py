"""Jobs that slow each other down: how far each has come, and when the next one is done.

A job with A seconds off the servers and B on server j would take A + ΣB alone, and load server j with B / (A + ΣB) of
its time. While a server's load u is above 1, its jobs take u times as long there: a whole job takes A + Σ B max(1, u).
Loads change when a job starts or ends; only then is `left` brought up to date.
"""

import numpy as np

from workbench.jit import inner_kernel


@inner_kernel
def join(sharing, jobs, job, k, now_s):
    """Put a job that starts on chain k among those in service."""
    _settle(sharing, now_s)
    place = sharing.count[0]
    sharing.active[place] = job
    apart_s = 0.0
    for f in range(jobs.work.shape[1]):
        apart_s += jobs.work[job, f] * sharing.communication_s[k, f]
    sharing.apart_s[place] = apart_s
    for hop in range(sharing.hops[k]):
        on_s = 0.0
        for f in range(jobs.work.shape[1]):
            on_s += jobs.work[job, f] * sharing.compute_s[k, hop, f]
        sharing.on_s[place, hop] = on_s
    sharing.left[place] = 1.0
    sharing.count[0] += 1
    _pace(sharing, jobs)


@inner_kernel
def next_done(sharing, jobs):
    """The place of the job that is done first at the present pace, of equal ones that on the fastest chain, and when.

    -1 and infinity where nothing is in service.
    """
    best, best_s = -1, np.inf
    for place in range(sharing.count[0]):
        done_s = sharing.settled_s[0] + sharing.left[place] * sharing.seconds[place]
        if done_s < best_s or (
            done_s == best_s and jobs.chain[sharing.active[place]] < jobs.chain[sharing.active[best]]
        ):
            best, best_s = place, done_s
    return best, best_s


@inner_kernel
def leave(sharing, jobs, place, now_s):
    """Take the job at a place out of service; those behind it move up."""
    _settle(sharing, now_s)
    last = sharing.count[0] - 1
    for at in range(place, last):
        sharing.active[at] = sharing.active[at + 1]
        sharing.apart_s[at] = sharing.apart_s[at + 1]
        sharing.left[at] = sharing.left[at + 1]
        for hop in range(sharing.on_s.shape[1]):
            sharing.on_s[at, hop] = sharing.on_s[at + 1, hop]
    sharing.count[0] = last
    _pace(sharing, jobs)


@inner_kernel
def _settle(sharing, now_s):
    """Bring up to date what is left of each job; the pace has not changed since the last time."""
    for place in range(sharing.count[0]):
        done = (now_s - sharing.settled_s[0]) / sharing.seconds[place] if sharing.seconds[place] > 0.0 else 1.0
        sharing.left[place] = max(0.0, sharing.left[place] - done)
    sharing.settled_s[0] = now_s


@inner_kernel
def _pace(sharing, jobs):
    """Work out the load of each server, and how long a whole job of each kind takes now."""
    sharing.load[:] = 0.0
    for place in range(sharing.count[0]):
        k = jobs.chain[sharing.active[place]]
        alone_s = sharing.apart_s[place]
        for hop in range(sharing.hops[k]):
            alone_s += sharing.on_s[place, hop]
        for hop in range(sharing.hops[k]):
            if alone_s > 0.0:
                sharing.load[sharing.server[k, hop]] += sharing.on_s[place, hop] / alone_s
    for place in range(sharing.count[0]):
        k = jobs.chain[sharing.active[place]]
        seconds = sharing.apart_s[place]
        for hop in range(sharing.hops[k]):
            seconds += sharing.on_s[place, hop] * max(1.0, sharing.load[sharing.server[k, hop]])
        sharing.seconds[place] = seconds
