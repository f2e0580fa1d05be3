"""GI/M/c with gamma distributed gaps between arrivals."""

import math

from workbench.jit import kernel


@kernel
def _log_transform(rate_per_s, arrival_rate_per_s, arrival_scv):
    """ln E[exp(-s gap)] of gamma gaps with mean 1/λ; an SCV of 0, or of no size, is a clock."""
    if arrival_scv < 1e-15:
        return -rate_per_s / arrival_rate_per_s
    return -math.log1p(rate_per_s * arrival_scv / arrival_rate_per_s) / arrival_scv


@kernel
def idle_root(arrival_rate_per_s, arrival_scv, capacity_per_s):
    """1 - σ, where σ is the root below 1 of σ = E[exp(-cμ(1-σ) gap)]; solved for 1 - σ, which keeps its digits near 0.

    1 - E[exp(-cμδ gap)] - δ is concave in δ, 0 at 0 and positive up to the root: bisection cannot miss it.
    """
    low, high = 0.0, 1.0
    for _ in range(1100):
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            break
        if -math.expm1(_log_transform(capacity_per_s * middle, arrival_rate_per_s, arrival_scv)) > middle:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@kernel
def wait_probability(arrival_rate_per_s, arrival_scv, service_rate_per_s, servers):
    """Share of customers that wait in GI/M/c, by Takács' coefficients (1962), added as logarithms.

    Each term holds (c(1-φ_j) - j) / (c(1-σ) - j), which is 0/0 where c(1-σ) is a whole number (M/M/10 at load 0.9).
    Both vanish together, so the quotient is taken as 1 - c(φ(x) - φ(j)) / (j - x) with x = c(1-σ), which is safe.
    """
    idle = idle_root(arrival_rate_per_s, arrival_scv, servers * service_rate_per_s)
    zero = servers * idle
    at_zero = math.exp(_log_transform(zero * service_rate_per_s, arrival_rate_per_s, arrival_scv))
    total = 1.0 / idle
    product = 0.0
    for j in range(1, servers + 1):
        seen = _log_transform(j * service_rate_per_s, arrival_rate_per_s, arrival_scv)
        left = -math.expm1(seen)
        product += seen - math.log(left)
        slope = _slope(zero, float(j), at_zero, service_rate_per_s, arrival_rate_per_s, arrival_scv)
        ways = math.lgamma(servers + 1.0) - math.lgamma(j + 1.0) - math.lgamma(servers - j + 1.0)
        total += math.exp(ways - product - math.log(left)) * (1.0 - servers * slope)
    return 1.0 / (total * idle)


@kernel
def _slope(zero, j, at_zero, service_rate_per_s, arrival_rate_per_s, arrival_scv):
    """(φ(zero μ) - φ(j μ)) / (j - zero), also where the two meet."""
    per_unit = service_rate_per_s / arrival_rate_per_s
    per_unit /= 1.0 + arrival_scv * zero * per_unit
    apart = j - zero
    if apart == 0.0:
        return at_zero * per_unit
    if arrival_scv < 1e-15:
        return -at_zero * math.expm1(-per_unit * apart) / apart
    return -at_zero * math.expm1(-math.log1p(arrival_scv * per_unit * apart) / arrival_scv) / apart


def gimc_slow(arrival_rate_per_s: float, arrival_scv: float, service_rate_per_s: float, servers: int):
    """Takács' formula as it stands in the books: (σ, share that waits), for an SCV above 0 and few servers."""

    def phi(rate_per_s):
        return (1 + rate_per_s * arrival_scv / arrival_rate_per_s) ** (-1 / arrival_scv)

    sigma = 0.0
    for _ in range(1000):  # ends within 1e-15 for loads up to 0.95
        sigma = phi(servers * service_rate_per_s * (1 - sigma))
    total, product = 1 / (1 - sigma), 1.0
    for j in range(1, servers + 1):
        seen = phi(j * service_rate_per_s)
        product *= seen / (1 - seen)
        quotient = (servers * (1 - seen) - j) / (servers * (1 - sigma) - j)
        total += math.comb(servers, j) / (product * (1 - seen)) * quotient
    return sigma, 1 / (total * (1 - sigma))
