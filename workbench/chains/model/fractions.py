"""Small systems without any rounding: the slow twin of exact means and bounds, in fractions."""

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from workbench.chains.model.ordering import ordered
from workbench.errors import InputError, UserError
from workbench.queueing.checking import arrival_rate, finite, stable
from workbench.queueing.kernels.levels import level_probabilities_slow
from workbench.records import shown

MOST_STATES = 400
"""Combinations of busy slots whose balance is still solved in fractions within some seconds."""


class InFractions(NamedTuple):
    """Mean number inside: Theorem 4's lower bound, the exact value, and the upper bound."""

    lower: Fraction
    exact: Fraction
    upper: Fraction


def in_fractions(rates_per_s: Sequence, slots: Sequence[int], arrival_rate_per_s) -> InFractions:
    """How many jobs are inside under join-the-fastest-free-chain, exactly, and between which bounds?

    For systems of some dozens of states: every number is a fraction, and its digits grow.

    Parameters:
        rates_per_s, arrival_rate_per_s: fractions, whole numbers, or texts such as "0.05"; a float stands for the
            binary fraction that it is.
        slots: jobs at once on each chain.

    >>> found = in_fractions([1, "0.5"], [1, 1], "0.75")
    >>> found.exact / Fraction("0.75")
    Fraction(40, 23)
    """
    if isinstance(rates_per_s, str) or not isinstance(rates_per_s, Iterable):
        raise InputError(f"is {shown(rates_per_s)}", "give a list of rates", field="rates_per_s")
    rates = [_fraction(rate, "rates_per_s") for rate in rates_per_s]
    arrivals = _fraction(arrival_rate_per_s, "arrival_rate_per_s")
    ordered([finite(rate, "rates_per_s") for rate in rates], slots)
    counts = [int(count) for count in slots]
    if (states := math.prod(count + 1 for count in counts)) > MOST_STATES:
        raise UserError(
            f"{states:,} combinations of busy slots are too many for fractions; take at most {MOST_STATES}, or `exact`."
        )
    arrival_rate(arrivals)
    capacity = sum((rate * count for rate, count in zip(rates, counts, strict=True)), Fraction(0))
    if arrivals >= capacity:
        stable(f"{len(rates)} chains with {sum(counts)} slots", float(arrivals), float(capacity), "add slots")
    unit = sorted((rate for rate, count in zip(rates, counts, strict=True) for _ in range(count)), reverse=True)
    lower, upper = (_birth_and_death(arrivals, order) for order in (unit, unit[::-1]))
    return InFractions(lower, _mean_inside(arrivals, rates, counts), upper)


def _fraction(value, name: str) -> Fraction:
    """A number that a user gave, without rounding; else an `InputError` that names it."""
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        remedy = 'give a fraction, a finite number, or a text such as "0.05"'
        raise InputError(f"is {shown(value)}", remedy, field=name) from None


def _birth_and_death(arrival_rate_per_s: Fraction, unit_rates_per_s: list[Fraction]) -> Fraction:
    """Mean number inside if the n inside always sat in the first n slots."""
    leave = list(itertools.accumulate(unit_rates_per_s))
    probability = level_probabilities_slow(arrival_rate_per_s, leave, True)
    load = arrival_rate_per_s / leave[-1]
    mean = sum((n * p for n, p in enumerate(probability)), Fraction(0))
    return mean + probability[-1] * load / (1 - load)


def _mean_inside(arrival_rate_per_s: Fraction, rates_per_s: list[Fraction], slots: list[int]) -> Fraction:
    """Mean number in the system, by Gaussian elimination of the balance of every state.

    One state for every combination of busy slots; with all of them busy the queue is geometric, so that the full state
    carries its weight. Any type that adds, multiplies and divides will do; fractions make it exact.
    """
    order = sorted(range(len(slots)), key=lambda k: -rates_per_s[k])
    rates, counts = [rates_per_s[k] for k in order], [slots[k] for k in order]
    states = list(itertools.product(*(range(count + 1) for count in counts)))
    place = {state: index for index, state in enumerate(states)}
    flow = [[Fraction(0)] * len(states) for _ in states]  # flow[to][from], leaving on the diagonal
    for state in states:
        moves = [(k, -1, state[k] * rates[k]) for k in range(len(counts)) if state[k]]
        free = [k for k in range(len(counts)) if state[k] < counts[k]]
        moves += [(free[0], 1, arrival_rate_per_s)] if free else []
        for k, step, rate in moves:
            to = place[(*state[:k], state[k] + step, *state[k + 1 :])]
            flow[to][place[state]] += rate
            flow[place[state]][place[state]] -= rate
    weight = _null_vector(flow)
    full = sum((c * mu for c, mu in zip(counts, rates, strict=True)), Fraction(0))
    load = arrival_rate_per_s / full
    tail = weight[-1] / (1 - load)
    total = sum(weight[:-1], Fraction(0)) + tail
    inside = sum((sum(state) * w for state, w in zip(states[:-1], weight, strict=False)), Fraction(0))
    return (inside + tail * sum(counts) + tail * load / (1 - load)) / total


def _null_vector(flow: list[list[Fraction]]) -> list[Fraction]:
    """The vector that the flow leaves unchanged, its first entry 1: eliminate states from the last on."""
    matrix = [row[:] for row in flow]
    size = len(matrix)
    for pivot in range(size - 1, 0, -1):
        top = matrix[pivot]
        for row in matrix[:pivot]:
            if row[pivot]:
                factor = row[pivot] / top[pivot]
                for column in range(pivot):
                    if top[column]:
                        row[column] -= factor * top[column]
                row[pivot] = Fraction(0)
    vector = [Fraction(1)]
    for pivot in range(1, size):
        known = sum((matrix[pivot][column] * vector[column] for column in range(pivot)), Fraction(0))
        vector.append(-known / matrix[pivot][pivot])
    return vector
