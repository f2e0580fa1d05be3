"""Which of the instances that can take a request gets it."""

from workbench.jit import lean_kernel
from workbench.serving.policy.routes import (
    LEAST_OUTSTANDING,
    LEAST_TOKENS,
    RANDOM,
    ROUND_ROBIN,
    TWO_CHOICES,
)


@lean_kernel
def choose(route, places, outstanding, tokens, draw, turn):
    """The position in `places` of the instance that a request goes to.

    Parameters:
        route: number of the policy.
        places: int64[k], the instances that can take it, as ascending places in the list of the model's instances.
        outstanding: int64[k], requests queued or running on each.
        tokens: int64[k], prompt and output tokens that these still have to process.
        draw: float64[2], uniform numbers of this request, the same whenever it is dispatched again.
        turn: where in the list of the model's instances the last choice left off (the place behind it).
    """
    if route == ROUND_ROBIN:
        for k in range(places.size):
            if places[k] >= turn:
                return k
        return 0
    if route == LEAST_OUTSTANDING:
        return smallest(outstanding)
    if route == RANDOM:
        return int(draw[0] * places.size)
    if route == LEAST_TOKENS:
        return smallest(tokens)
    if route == TWO_CHOICES:
        first, second = int(draw[0] * places.size), int(draw[1] * places.size)
        return second if outstanding[second] < outstanding[first] else first
    return 0


@lean_kernel
def smallest(values):
    """The position of the first smallest value."""
    best = 0
    for k in range(1, values.size):
        if values[k] < values[best]:
            best = k
    return best
