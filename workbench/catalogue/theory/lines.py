"""The waiting lines that theory experiments answer for, each by formula, by compiled path and by SimPy twin."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from workbench.queueing import (
    Customers,
    Deterministic,
    Distribution,
    Exponential,
    Gamma,
    Lognormal,
    Path,
    batched_path,
    batched_service,
    draw_customers,
    fastest_free,
    fastest_free_path,
    first_come_path,
    gimc,
    mdc,
    mg1,
    mmc,
    polling,
    processor_sharing,
    processor_sharing_path,
    rotation_path,
)
from workbench.queueing.simulated import (
    simulate_batched,
    simulate_fastest_free,
    simulate_first_come,
    simulate_processor_sharing,
    simulate_rotation,
)

STEPS, FIXED_SHARE = 100, 0.9
"""Batched service: steps a job needs, and the part of a lone job's step that the whole batch shares."""


class Setting(NamedTuple):
    """What a line is asked about; a service takes 1 s on average on one server.

    Attributes:
        load: work that arrives over work that can be done.
        servers: servers, queues of a rotation, or places in a batch.
        arrival_scv, service_scv: squared coefficients of variation, for the lines that let them be chosen.
        speed_ratio: fastest over slowest of unequal servers.
        switch_s: a rotating server's walk from one queue to the next.
    """

    load: float
    servers: int
    arrival_scv: float
    service_scv: float
    speed_ratio: float
    switch_s: float


class Line(NamedTuple):
    """One kind of line.

    Attributes:
        capacity: jobs per second that a setting can do.
        gaps, service: distributions of a setting; the first takes the arrival rate too.
        response_s: mean time in the system by formula, of a setting at an arrival rate.
        compiled, simulated: paths of given customers; the last argument are random numbers of its own.
        source: of the formula.
    """

    capacity: Callable[[Setting], float]
    gaps: Callable[[Setting, float], Distribution]
    service: Callable[[Setting], Distribution]
    response_s: Callable[[Setting, float], float]
    compiled: Callable[[Setting, Customers, np.random.Generator], Path]
    simulated: Callable[[Setting, Customers, np.random.Generator], Path]
    source: str


def classes(setting: Setting) -> tuple[list[float], list[int]]:
    """Service rates and numbers of unequal servers: one half is faster than the other, 1 on average."""
    slots = [setting.servers - setting.servers // 2, setting.servers // 2]
    if slots[1] == 0:
        return [1.0], [1]
    slow = setting.servers / (slots[0] * setting.speed_ratio + slots[1])
    return [slow * setting.speed_ratio, slow], slots


def step_s(setting: Setting) -> tuple[float, float]:
    """a and b of a batch's step, so that a job alone takes 1 s."""
    return FIXED_SHARE / STEPS, (1 - FIXED_SHARE) / STEPS


def _poisson(_: Setting, rate: float) -> Distribution:
    return Exponential(mean_s=1 / rate)


def _lognormal(setting: Setting) -> Distribution:
    return Lognormal(mean_s=1.0, scv=setting.service_scv) if setting.service_scv else Deterministic(mean_s=1.0)


def _exponential(_: Setting) -> Distribution:
    return Exponential(mean_s=1.0)


def _steps(_: Setting) -> Distribution:
    return Exponential(mean_s=float(STEPS))


def _queue_of(setting: Setting, customers: Customers, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(setting.servers, size=len(customers.arrival_s))


def _batch_capacity(setting: Setting) -> float:
    fixed, each = step_s(setting)
    return setting.servers / (STEPS * (fixed + each * setting.servers))


LINES: dict[str, Line] = {
    "M/M/c": Line(
        lambda s: s.servers,
        _poisson,
        _exponential,
        lambda s, rate: mmc(rate, 1.0, s.servers).mean_response_s,
        lambda s, customers, _: first_come_path(customers, s.servers),
        lambda s, customers, _: simulate_first_come(customers, s.servers),
        "exact: Erlang 1917",
    ),
    "M/D/c": Line(
        lambda s: s.servers,
        _poisson,
        lambda _: Deterministic(mean_s=1.0),
        lambda s, rate: mdc(rate, 1.0, s.servers).mean_response_s,
        lambda s, customers, _: first_come_path(customers, s.servers),
        lambda s, customers, _: simulate_first_come(customers, s.servers),
        "exact: Crommelin 1932",
    ),
    "M/G/1 (lognormal)": Line(
        lambda s: 1.0,
        _poisson,
        _lognormal,
        lambda s, rate: mg1(rate, _lognormal(s)).mean_response_s,
        lambda s, customers, _: first_come_path(customers),
        lambda s, customers, _: simulate_first_come(customers),
        "exact: Pollaczek-Khinchine",
    ),
    "GI/M/c (gamma arrivals)": Line(
        lambda s: s.servers,
        lambda s, rate: Gamma(mean_s=1 / rate, scv=s.arrival_scv) if s.arrival_scv else Deterministic(mean_s=1 / rate),
        _exponential,
        lambda s, rate: gimc(rate, s.arrival_scv, 1.0, s.servers).mean_response_s,
        lambda s, customers, _: first_come_path(customers, s.servers),
        lambda s, customers, _: simulate_first_come(customers, s.servers),
        "exact: Takács 1962",
    ),
    "M/G/1 processor sharing (lognormal)": Line(
        lambda s: 1.0,
        _poisson,
        _lognormal,
        lambda s, rate: processor_sharing(rate, 1.0).mean_response_s,
        lambda s, customers, _: processor_sharing_path(customers),
        lambda s, customers, _: simulate_processor_sharing(customers),
        "exact: Kleinrock 1967",
    ),
    "batched service": Line(
        _batch_capacity,
        _poisson,
        _steps,
        lambda s, rate: batched_service(rate, *step_s(s), STEPS, s.servers).mean_response_s,
        lambda s, customers, _: batched_path(customers, *step_s(s), s.servers),
        lambda s, customers, _: simulate_batched(customers, *step_s(s), s.servers),
        "exact birth-death chain; steps a job needs are exponential",
    ),
    "fastest free of unequal servers": Line(
        lambda s: s.servers,
        _poisson,
        _exponential,
        lambda s, rate: fastest_free(rate, *classes(s)).mean_response_s,
        lambda s, customers, _: fastest_free_path(customers, *classes(s)),
        lambda s, customers, _: simulate_fastest_free(customers, *classes(s)),
        "exact sparse chain",
    ),
    "one server rotating over queues": Line(
        lambda s: 1.0,
        _poisson,
        _exponential,
        lambda s, rate: (
            polling(
                s.servers, rate / s.servers, Exponential(mean_s=1.0), Deterministic(mean_s=s.switch_s)
            ).mean_response_s
        ),
        lambda s, customers, rng: rotation_path(customers, _queue_of(s, customers, rng), [s.switch_s]),
        lambda s, customers, rng: simulate_rotation(customers, _queue_of(s, customers, rng), [s.switch_s]),
        "exact pseudo-conservation law: Takagi 1988",
    ),
}


def customers_of(line: Line, setting: Setting, count: int, seed: int) -> Customers:
    """Customers of a setting on common random numbers: the same seed for every load and backend."""
    rate = setting.load * line.capacity(setting)
    return draw_customers(line.gaps(setting, rate), line.service(setting), count, seed)
