"""Unequal servers behind one queue, each customer to the fastest free one: exact means and the paper's bounds."""

import math
from typing import NamedTuple

import numpy as np

from workbench.errors import InputError, UserError
from workbench.queueing.checking import arrival_rate, levels, stable, vector
from workbench.queueing.kernels.levels import level_probabilities
from workbench.queueing.model.answer import Answer, Waiting, line
from workbench.queueing.policy import fastest_first

MOST_STATES, WIDEST_CUT = 50_000, 2_500
"""States of the exact chain, and of the smallest cut across it, that still solve in a few seconds: the work grows with
the cube of the cut, which many classes of few slots make wide."""

_DISPATCH = "arrivals to the fastest free server"


class UnequalServers(Waiting):
    """M/M with server classes of unequal rate under fastest-free dispatch, in its steady state.

    Attributes:
        service_rates_per_s: rate of one slot of each class, as given.
        slots: slots of each class.
        wait_probability: share of customers that find every slot busy.
        empty_probability: P(nobody in the system).
        class_utilisation: share of busy slots of each class.
    """

    service_rates_per_s: tuple[float, ...]
    slots: tuple[int, ...]
    wait_probability: float
    empty_probability: float
    class_utilisation: tuple[float, ...]


class UnequalBounds(Answer):
    """Bounds on the mean number in the system and the mean response under fastest-free dispatch.

    Attributes:
        in_system_lower, in_system_upper: as if the n customers always sat in the n fastest, or slowest, slots.
        response_lower_s, response_upper_s: the same divided by λ.
    """

    in_system_lower: float
    in_system_upper: float
    response_lower_s: float
    response_upper_s: float


class _Classes(NamedTuple):
    arrival_rate_per_s: float
    rates_per_s: np.ndarray
    slots: np.ndarray
    capacity_per_s: float
    name: str


def _classes(arrival_rate_per_s: float, service_rates_per_s, slots) -> _Classes:
    arrivals = arrival_rate(arrival_rate_per_s)
    rates = vector(service_rates_per_s, "service_rates_per_s", above=True)
    counts = np.ones(rates.size) if slots is None else vector(slots, "slots", above=True)
    if counts.size != rates.size:
        raise InputError(f"holds {counts.size} numbers for {rates.size} rates", "give one per rate", field="slots")
    if (counts != np.round(counts)).any():
        raise InputError("holds a fraction", "give whole numbers of slots", field="slots")
    levels(math.fsum(counts), "slots")
    capacity = math.fsum(rates * counts)
    name = f"M/M/{int(counts.sum())} of {rates.size} rates"
    stable(name, arrivals, capacity, "add servers")
    return _Classes(arrivals, rates, counts.astype(np.int64), capacity, name)


def fastest_free(arrival_rate_per_s: float, service_rates_per_s, slots=None) -> UnequalServers:
    """How long do customers wait and stay when each goes to the fastest free of unequal servers, else into one queue?

    No product form exists. With at most all slots busy the chain has one state per combination of busy slots, solved as
    a sparse linear system; beyond, the queue is geometric.

    Parameters:
        arrival_rate_per_s: λ of the Poisson arrivals.
        service_rates_per_s: rate of one slot of each class; services are exponential.
        slots: slots of each class, one each if left out.

    Raises:
        `UserError` where the chain would have more than 50,000 states, or a cut across it more than 2,500;
        `Unstable` where arrivals are not below the rate of all slots; `InputError` for numbers that cannot be.

    >>> pair = fastest_free(1.5, [2.0, 1.0])
    >>> round(pair.mean_in_system, 9), round(pair.mean_response_s, 9)
    (1.304347826, 0.869565217)
    """
    given = _classes(arrival_rate_per_s, service_rates_per_s, slots)
    states = math.prod(int(count) + 1 for count in given.slots)
    if states > MOST_STATES:
        raise UserError(
            f"The exact chain of these classes has {states:,} states, and {MOST_STATES:,} is the most that is solved; "
            "take fastest_free_bounds or a sample path."
        )
    if (cut := states // (int(given.slots.max()) + 1)) > WIDEST_CUT:
        raise UserError(
            f"The exact chain of these {given.slots.size} classes is {cut:,} states wide, and {WIDEST_CUT:,} is the "
            "most that is solved in seconds; take fewer classes, fastest_free_bounds or a sample path."
        )
    order = np.array(fastest_first(given.rates_per_s))
    busy, weight = _below_full(given.arrival_rate_per_s, given.rates_per_s[order], given.slots[order])
    load = given.arrival_rate_per_s / given.capacity_per_s
    weight[-1] /= 1 - load
    weight /= math.fsum(weight)
    waiting = weight[-1] * load / (1 - load)
    shares = np.empty(order.size)
    shares[order] = (weight @ busy) / given.slots[order]
    in_service = math.fsum(shares * given.slots)
    return UnequalServers(
        queue=given.name,
        kind="exact",
        arrivals="Poisson",
        service="exponential",
        source=f"{_DISPATCH}: exact linear solution of the chain below full occupancy, geometric above",
        **line(
            given.arrival_rate_per_s,
            in_service / int(given.slots.sum()),
            waiting / given.arrival_rate_per_s,
            in_service / given.arrival_rate_per_s,
        ),
        service_rates_per_s=tuple(given.rates_per_s.tolist()),
        slots=tuple(given.slots.tolist()),
        wait_probability=float(weight[-1]),
        empty_probability=float(weight[0]),
        class_utilisation=tuple(shares.tolist()),
    )


def _below_full(arrival_rate_per_s: float, rates_per_s: np.ndarray, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Busy slots in every state, and the states' weights, of the chain in which a full system admits no one.

    One weight is set to 1 and its equation left out; what remains is a diagonally dominant M-matrix, whose elimination
    along the diagonal subtracts nothing from anything.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.linalg import splu

    shape = tuple(slots + 1)
    index = np.arange(math.prod(shape))
    busy = np.stack(np.unravel_index(index, shape), axis=1)
    stride = np.array([math.prod(shape[place + 1 :]) for place in range(slots.size)])
    taker = (busy < slots)[:-1].argmax(axis=1)
    source, target = [index[:-1]], [index[:-1] + stride[taker]]
    rate = [np.full(index.size - 1, arrival_rate_per_s)]
    for place in range(slots.size):
        served = index[busy[:, place] > 0]
        source.append(served)
        target.append(served - stride[place])
        rate.append(busy[served, place] * rates_per_s[place])
    rows, columns, rates = np.concatenate(target), np.concatenate(source), np.concatenate(rate)
    leaving = np.bincount(columns, rates, index.size)
    balance = coo_matrix(
        (np.concatenate([-rates, leaving]), (np.concatenate([rows, index]), np.concatenate([columns, index])))
    ).tocsc()
    pinned = _likely_state(arrival_rate_per_s, rates_per_s, slots) @ stride
    kept = np.delete(index, pinned)
    weight = np.ones(index.size)
    factors = splu(
        balance[kept][:, kept].tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    weight[kept] = factors.solve(-balance[kept][:, [pinned]].toarray().ravel())
    return busy, weight


def _likely_state(arrival_rate_per_s: float, rates_per_s: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Slots filled from the fastest on until they complete as much as arrives: a state of no vanishing weight."""
    left, filled = arrival_rate_per_s, np.zeros(slots.size, dtype=np.int64)
    for place in range(slots.size):
        filled[place] = min(slots[place], round(left / rates_per_s[place]))
        left = max(0.0, left - filled[place] * rates_per_s[place])
    return filled


def fastest_free_bounds(arrival_rate_per_s: float, service_rates_per_s, slots=None) -> UnequalBounds:
    """Between which values do the mean number and the mean response lie under fastest-free dispatch?

    Birth-death chains that leave as fast, or as slowly, as n busy slots can (server-chain paper, arXiv 2604.14993,
    Theorem 4); equal for equal servers. Any number of slots.

    Parameters:
        arrival_rate_per_s, service_rates_per_s, slots: as in `fastest_free`.

    Raises:
        Unstable: arrivals are not below the rate of all slots. InputError: numbers that cannot be.

    >>> bounds = fastest_free_bounds(0.75, [1.0, 0.5])
    >>> round(bounds.response_lower_s, 6), round(bounds.response_upper_s, 6)
    (1.6, 2.0)
    """
    given = _classes(arrival_rate_per_s, service_rates_per_s, slots)
    rates = np.sort(np.repeat(given.rates_per_s, given.slots))
    lower, upper = _mean_level(given.arrival_rate_per_s, rates[::-1]), _mean_level(given.arrival_rate_per_s, rates)
    return UnequalBounds(
        queue=given.name,
        kind="bound",
        arrivals="Poisson",
        service="exponential",
        source=f"{_DISPATCH}: arXiv 2604.14993, Theorem 4 (notes on server chains, §2.8)",
        in_system_lower=lower,
        in_system_upper=upper,
        response_lower_s=lower / given.arrival_rate_per_s,
        response_upper_s=upper / given.arrival_rate_per_s,
    )


def _mean_level(arrival_rate_per_s: float, rates_per_s: np.ndarray) -> float:
    leave = np.cumsum(rates_per_s)
    inside = np.empty(leave.size + 1)
    level_probabilities(arrival_rate_per_s, leave, True, inside)
    load = arrival_rate_per_s / leave[-1]
    return math.fsum(np.arange(inside.size) * inside) + float(inside[-1]) * load / (1 - load)
