"""Which instance takes a whole request, where models do not take turns: ServerlessLLM as Aegaeon's simulator has it.

Source: Aegaeon's artifact, aegaeon/sim/scheduler.py (V02Policy and the variant that knows output lengths).
"""

from workbench.jit import lean_kernel

RUN = 4
"""Requests of one model that an instance takes before another one is asked."""


@lean_kernel
def place_run(tail, run, given_s, begin, end, model):
    """The instance that takes a request, requests being served in order.

    As long as those whose last run is of this model have room for one more within four a run, the shortest of these
    runs gets it; else an empty instance, or the one that was longest given nothing among those that end with another
    model; else the shortest run after all.

    Parameters:
        tail: int64, model of the last run of each instance, -1 before the first.
        run: int64, requests of that run that are not done.
        given_s: float64, when each was last given a request.
        begin, end: places of the instances that serve the model.
        model: of the request.
    """
    room, shortest, empty, oldest = 0, -1, -1, -1
    for i in range(begin, end):
        if tail[i] == model:
            room += max(0, RUN - run[i])
            if shortest < 0 or run[i] < run[shortest]:
                shortest = i
        else:
            if run[i] == 0 and empty < 0:
                empty = i
            if oldest < 0 or given_s[i] < given_s[oldest]:
                oldest = i
    if room < 1:
        if empty >= 0:
            return empty
        if oldest >= 0:
            return oldest
    return shortest
