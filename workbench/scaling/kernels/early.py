"""What serving early is worth: steps made by the end of a scale-out, against waiting for all weights."""

import numpy as np

from workbench.jit import kernel


@kernel
def steps_gained(forms_s, complete_s, leave_s, alone_s, piped_s, resume_s):
    """Steps that nodes make in pipelines, less those that waiting nodes would have made, by the end of a scale-out.

    A node of a pipeline makes a step every `piped_s` from `forms_s` to `leave_s`, loses `resume_s` as it resumes its
    request, and goes on alone. A waiting node makes a step every `alone_s` from its own `complete_s` on. A step in
    progress counts as far as it has come.

    Parameters:
        forms_s, complete_s, leave_s: float64[n] of each node; `forms_s` is infinite for a node in no pipeline.
        alone_s, piped_s, resume_s: seconds of a step alone, of one through a pipeline, and lost by resuming.
    """
    total = 0.0
    for node in range(forms_s.size):
        total -= (leave_s[node] - complete_s[node]) / alone_s
        if forms_s[node] < leave_s[node]:
            total += (leave_s[node] - forms_s[node]) / piped_s - resume_s / alone_s
    return total


@kernel
def paying_step_s(forms_s, complete_s, leave_s, alone_s, resume_s):
    """Seconds of a step through a pipeline at which `steps_gained` is 0: above it, waiting makes more.

    `alone_s` times the seconds that nodes spend in pipelines over those that they lose by leaving late and by resuming;
    infinity where nothing is lost.
    """
    spent, lost = 0.0, 0.0
    for node in range(forms_s.size):
        lost += leave_s[node] - complete_s[node]
        if forms_s[node] < leave_s[node]:
            spent += leave_s[node] - forms_s[node]
            lost += resume_s
    return alone_s * spent / lost if lost > 0.0 else np.inf


def steps_gained_slow(forms_s, complete_s, leave_s, alone_s, piped_s, resume_s):
    """Twin of `steps_gained`: what each way has made at the end, one after the other."""
    end_s = float(np.max(leave_s))
    piped = np.isfinite(forms_s) & (forms_s < leave_s)
    begins_s = leave_s + np.where(piped, resume_s, 0.0)
    early = np.where(piped, leave_s - np.minimum(forms_s, leave_s), 0.0).sum() / piped_s
    return early + ((end_s - begins_s) - (end_s - complete_s)).sum() / alone_s


def paying_step_slow(forms_s, complete_s, leave_s, alone_s, resume_s):
    """Twin of `paying_step_s`: halving an interval until the gain changes its sign."""
    low, high = 1e-12, 1e12
    if steps_gained_slow(forms_s, complete_s, leave_s, alone_s, high, resume_s) >= -1e-12:
        return np.inf
    for _ in range(200):
        middle = np.sqrt(low * high)
        if steps_gained_slow(forms_s, complete_s, leave_s, alone_s, middle, resume_s) > 0:
            low = middle
        else:
            high = middle
    return high
