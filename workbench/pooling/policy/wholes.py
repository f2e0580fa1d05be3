"""Which instance takes a whole request, where models do not take turns: ServerlessLLM as Aegaeon's simulator has it.

Source: Aegaeon's artifact, aegaeon/sim/scheduler.py (V02Policy and the variant that knows output lengths).
"""

from workbench.jit import lean_kernel

RUN = 4
"""Requests of one model that an instance takes before another one is asked."""


@lean_kernel
def place_run(tail, run, active_s, begin, end, model):
    """The instance that takes a request, requests being served in order.

    As long as those whose last run is of this model have room for one more within four a run, the shortest of these
    runs gets it; else an instance that was never used, or the least recently active one of those that end with another
    model; else the shortest run after all.

    Parameters:
        tail: int64, model of the last run of each instance, -1 before the first.
        run: int64, requests of that run that are not done.
        active_s: float64, when each last began a step or a switch.
        begin, end: places of the instances that serve the model.
        model: of the request.
    """
    room, shortest, unused, oldest = 0, -1, -1, -1
    for i in range(begin, end):
        if tail[i] == model:
            room += max(0, RUN - run[i])
            if shortest < 0 or run[i] < run[shortest]:
                shortest = i
        else:
            if tail[i] < 0 and unused < 0:
                unused = i
            if oldest < 0 or active_s[i] < active_s[oldest]:
                oldest = i
    if room < 1:
        if unused >= 0:
            return unused
        if oldest >= 0:
            return oldest
    return shortest
