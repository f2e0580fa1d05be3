"""One server, first come first served: Lindley's recursion."""

from workbench.jit import kernel


@kernel
def lindley(gap_s, service_s, wait_s):
    """Fill float64[n] with waits: W(0) = 0, W(n) = max(0, W(n-1) + S(n-1) - gap(n)); `gap_s[0]` is not used.

    It knows gaps only, never the time, and so stays as sharp at the end of a long run as at its start.
    """
    wait = 0.0
    for customer in range(gap_s.size):
        if customer > 0:
            wait = max(0.0, wait + service_s[customer - 1] - gap_s[customer])
        wait_s[customer] = wait


def lindley_slow(gap_s, service_s):
    """What the recursion sums up: the largest total of (service - gap) over all stretches that end with a customer."""
    steps = [s - g for s, g in zip(service_s[:-1], gap_s[1:], strict=True)]
    return [max(sum(steps[first:last]) for first in range(last + 1)) for last in range(len(gap_s))]
