"""How many of many models have a request in flight: busy periods of M/G/∞ queues, one a model."""

from workbench.jit import kernel


@kernel
def busy_periods(arrival_s, finish_s, model, begin_s, end_s):
    """Fill float64[n] with the busy periods of requests sorted by model, then arrival; returns how many there are.

    A request that arrives at the very instant at which the last one of its model leaves prolongs the busy period.
    """
    count = 0
    for request in range(arrival_s.size):
        same = request > 0 and model[request] == model[request - 1]
        if same and arrival_s[request] <= end_s[count - 1]:
            end_s[count - 1] = max(end_s[count - 1], finish_s[request])
        else:
            begin_s[count] = arrival_s[request]
            end_s[count] = finish_s[request]
            count += 1
    return count


def active_slow(arrival_s, finish_s, model, time_s):
    """How many models have a request in flight just after `time_s`, by looking at every request."""
    inside = zip(arrival_s, finish_s, model, strict=True)
    return len({name for begin, end, name in inside if begin <= time_s < end})
