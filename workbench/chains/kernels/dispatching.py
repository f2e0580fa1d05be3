"""The event loop of dispatch: completions and arrivals in order, and the central line asked behind each of them.

At one instant completions come before arrivals, and of completions that on the fastest chain first. After each of them
the policy is asked for the head of the central line until it leaves it there. A job sent to a chain without a free slot
joins the chain's own line, first come first served.
"""

import numpy as np

from workbench.chains.kernels.finishing import first_to_finish, has_finished, will_finish
from workbench.chains.kernels.layout import BAD_CHOICE, DONE, STUCK
from workbench.chains.kernels.sharing import join, leave, next_done
from workbench.chains.policy.dispatch import choose
from workbench.jit import inner_kernel, kernel


@kernel
def run(jobs, lines, sharing, policy, chooser):
    """Serve all jobs.

    Parameters:
        jobs, lines: see `layout`.
        sharing: where jobs slow each other down, or None where service takes its nominal time.
        policy: number of the dispatch policy.
        chooser: a first-class function in its place, or None.

    Returns:
        How it ended, see `layout`.
    """
    for job in range(jobs.arrival_s.size):
        while True:
            place, done_s = _next_completion(jobs, lines, sharing)
            if done_s > jobs.arrival_s[job]:
                break
            if not _complete(jobs, lines, sharing, policy, chooser, place, done_s):
                return BAD_CHOICE
        _queue(jobs, lines, job, lines.slots.size)
        lines.waiting[0] += 1
        if not _hand_out(jobs, lines, sharing, policy, chooser, jobs.arrival_s[job]):
            return BAD_CHOICE
    while True:
        place, done_s = _next_completion(jobs, lines, sharing)
        if done_s == np.inf:
            return DONE if lines.waiting[0] == 0 else STUCK
        if not _complete(jobs, lines, sharing, policy, chooser, place, done_s):
            return BAD_CHOICE


@inner_kernel
def _next_completion(jobs, lines, sharing):
    """Which job is done next (its chain, or its place among those in service), and when."""
    if sharing is None:
        k = first_to_finish(lines)
        return k, lines.next_s[k]
    return next_done(sharing, jobs)


@inner_kernel
def _complete(jobs, lines, sharing, policy, chooser, place, now_s):
    """A job leaves; the next of its chain's line starts, then the central line is asked. False for a bad choice."""
    k = place
    if sharing is None:
        has_finished(lines, k, lines.running[k])
    else:
        job = sharing.active[place]
        k = jobs.chain[job]
        jobs.finish_s[job] = now_s
        leave(sharing, jobs, place, now_s)
    lines.running[k] -= 1
    lines.inside[k] -= 1
    if lines.head[k] >= 0:
        _start(jobs, lines, sharing, _next(jobs, lines, k), k, now_s)
    return _hand_out(jobs, lines, sharing, policy, chooser, now_s)


@inner_kernel
def _hand_out(jobs, lines, sharing, policy, chooser, now_s):
    """Ask the policy for the head of the central line until it leaves it there. False for a bad choice."""
    centre = lines.slots.size
    while lines.waiting[0] > 0:
        draw = jobs.draw[lines.head[centre]]
        if chooser is None:
            k = choose(policy, lines.inside, lines.slots, lines.rate_per_s, lines.waiting[0], draw, lines.memory)
        else:
            k = chooser(lines.inside, lines.slots, lines.rate_per_s, lines.waiting[0], draw, lines.memory)
        if k < -1 or k >= centre:
            return False
        if k < 0:
            return True
        job = _next(jobs, lines, centre)
        lines.waiting[0] -= 1
        lines.inside[k] += 1
        jobs.chain[job] = k
        if lines.running[k] < lines.slots[k]:
            _start(jobs, lines, sharing, job, k, now_s)
        else:
            _queue(jobs, lines, job, k)
    return True


@inner_kernel
def _start(jobs, lines, sharing, job, k, now_s):
    """A job begins on chain k."""
    jobs.start_s[job] = now_s
    if sharing is None:
        service_s = 0.0
        for f in range(jobs.work.shape[1]):
            service_s += jobs.work[job, f] * lines.seconds[k, f]
        jobs.finish_s[job] = now_s + service_s
        will_finish(lines, k, lines.running[k], now_s + service_s)
    else:
        join(sharing, jobs, job, k, now_s)
    lines.running[k] += 1


@inner_kernel
def _queue(jobs, lines, job, line):
    """Put a job at the end of a line."""
    if lines.head[line] < 0:
        lines.head[line] = job
    else:
        jobs.behind[lines.tail[line]] = job
    lines.tail[line] = job


@inner_kernel
def _next(jobs, lines, line):
    """Take the first job out of a line."""
    job = lines.head[line]
    lines.head[line] = jobs.behind[job]
    return job
