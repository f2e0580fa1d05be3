"""Distributions of wait and response that are exponential beyond an atom at 0."""

import math
from collections.abc import Callable

from workbench.queueing.checking import not_negative, share


def delayed_exceeds(wait_probability: float, rate_per_s: float, wait_s: float) -> float:
    """P(wait > t) where a share waits, and those wait exponentially at a rate."""
    return wait_probability * math.exp(-rate_per_s * not_negative(wait_s, "wait_s"))


def delayed_quantile_s(wait_probability: float, rate_per_s: float, part: float) -> float:
    """Smallest t with P(wait <= t) >= part, of the same distribution; 0 where that many do not wait at all."""
    left = 1 - share(part, "part")
    return math.log(wait_probability / left) / rate_per_s if wait_probability > left else 0.0


def response_exceeds(wait_probability: float, rate_per_s: float, service_rate_per_s: float, response_s: float) -> float:
    """P(wait + exponential service > t), waits as above; written so that equal rates are no special case."""
    t = not_negative(response_s, "response_s")
    slow, fast = sorted((rate_per_s, service_rate_per_s))
    apart = fast - slow
    grown = -math.expm1(-apart * t) / apart if apart else t
    both = math.exp(-slow * t) * (1 + slow * grown)
    return (1 - wait_probability) * math.exp(-service_rate_per_s * t) + wait_probability * both


def quantile_of(exceeds: Callable[[float], float], part: float, scale_s: float) -> float:
    """Smallest t with P(more than t) <= 1 - part, for a continuous distribution, by bisection."""
    left = 1 - share(part, "part")
    low, high = 0.0, scale_s
    while exceeds(high) > left:
        low, high = high, 2 * high
    while low < (middle := 0.5 * (low + high)) < high:
        low, high = (middle, high) if exceeds(middle) > left else (low, middle)
    return high
