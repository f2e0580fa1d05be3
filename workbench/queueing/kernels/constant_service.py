"""Constant service times: the mean wait with c servers, and the whole distribution with one."""

import cmath
import math

from workbench.jit import kernel
from workbench.queueing.kernels.poisson import poisson_excess, poisson_probability


@kernel
def mdc_mean_queue(offered_load, servers):
    """Mean number waiting in M/D/c, a = λD below c."""
    if servers * (1.0 - offered_load / servers) ** 2 > 0.05:
        return mdc_mean_queue_by_series(offered_load, servers)
    return mdc_mean_queue_by_roots(offered_load, servers)


@kernel
def mdc_mean_queue_by_series(offered_load, servers):
    """Crommelin (1932) by Spitzer's identity: sum over i of E[(N_i - ic)+] / i, N_i ~ Poisson(ia); positive terms."""
    total = 0.0
    turn = 1
    while True:
        added = total + poisson_excess(turn * servers, turn * offered_load) / turn
        if added == total:
            return total
        total = added
        turn += 1


@kernel
def mdc_mean_queue_by_roots(offered_load, servers):
    """Crommelin (1932) by the roots of z^c = exp(-a(1-z)) inside the unit circle.

    Lq = sum of Re 1/(1-z_i) - (c(c-1) - a^2) / (2(c-a)). Solved for y = 1 - z by Newton's method on
    y = 1 - exp(iφ - ρy), started with a few rounds of that map, which contracts; roots come in conjugate pairs.
    """
    load = offered_load / servers
    total = 0.0
    for root in range(1, servers // 2 + 1):
        angle = 2.0 * math.pi * root / servers
        y = complex(1.0, 0.0)
        for _ in range(12):
            y = -_expm1(complex(0.0, angle) - load * y)
        for _ in range(60):
            wrong = y + _expm1(complex(0.0, angle) - load * y)
            step = wrong / (1.0 - load * cmath.exp(complex(0.0, angle) - load * y))
            y -= step
            if abs(step) <= 1e-15 * abs(y):
                break
        pair = 1.0 if 2 * root == servers else 2.0
        total += pair * (1.0 / y).real
    return total - (servers * (servers - 1.0) - offered_load**2) / (2.0 * (servers - offered_load))


@kernel
def _expm1(value):
    """exp(z) - 1 for complex z without cancellation near 0."""
    half = math.sin(0.5 * value.imag)
    grown = math.exp(value.real)
    return complex(math.expm1(value.real) - 2.0 * grown * half * half, grown * math.sin(value.imag))


@kernel
def md1_waiting_levels(load, cumulative):
    """Fill float64[m] with P(at most k wait) in M/D/1 for k = 0 to m-1.

    The number in the system is followed by cuts between its levels, seen at departures: what goes up over a cut comes
    down over it, so every term is positive. Customers seen by a departure are those seen by an arrival (Kleinrock 1).
    """
    most = cumulative.size + 1
    up = _poisson_tails(load)
    down = math.exp(-load)
    inside = [1.0 - load]
    total = 1.0 - load
    for level in range(1, most):
        crossing = inside[0] * up[level] if level < len(up) else 0.0
        for below in range(max(1, level - len(up) + 2), level):
            crossing += inside[below] * up[level - below + 1]
        inside.append(crossing / down)
        total += inside[level]
        cumulative[level - 1] = min(total, 1.0)


@kernel
def _poisson_tails(mean):
    """P(N >= k) for k = 0, 1, ... until it vanishes; each a sum of positive terms from its own level on."""
    tails = [1.0]
    level = 1
    while True:
        term = poisson_probability(level, mean)
        total = 0.0
        count = level
        while total + term != total:
            total += term
            count += 1
            term *= mean / count
        if total < 1e-300:
            return tails
        tails.append(total)
        level += 1


@kernel
def md1_wait_cdf(wait_in_services, load, cumulative):
    """P(wait <= t) in M/D/1, t in service times: a sum of positive terms (Franx 2001), unlike Erlang's alternating one.

    `cumulative` holds P(at most k wait) for k = 0 to floor(t).
    """
    whole = math.floor(wait_in_services)
    mean = load * (whole + 1 - wait_in_services)
    total = 0.0
    for arrivals in range(whole + 1):
        term = poisson_probability(arrivals, mean)
        if term == 0.0 and arrivals > mean:
            break
        total += cumulative[whole - arrivals] * term
    return total


def md1_wait_cdf_slow(wait_in_services: float, load: float) -> float:
    """Erlang (1909): alternating sum, good for waits of a few service times only."""
    return (1 - load) * math.fsum(
        (load * (j - wait_in_services)) ** j / math.factorial(j) * math.exp(-load * (j - wait_in_services))
        for j in range(math.floor(wait_in_services) + 1)
    )
