"""G/G/c by approximation: formulas that know only means and squared coefficients of variation."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from workbench.errors import InputError, UnknownName
from workbench.queueing.checking import arrival_rate, more_servers, not_negative, positive, server_count, stable
from workbench.queueing.kernels.constant_service import mdc_mean_queue
from workbench.queueing.kernels.erlang import erlang_c
from workbench.queueing.kernels.gamma_arrivals import idle_root, wait_probability
from workbench.queueing.model.answer import Waiting, line
from workbench.queueing.model.tails import delayed_exceeds, delayed_quantile_s
from workbench.records import shown

_WITNESSES = (
    "exact M/D/c and gamma/M/c at loads of 0.8 and more, up to 16 servers, SCV of gaps 0.25 to 4; "
    "more at lighter loads and on burstier arrivals"
)

Method = Literal["kingman", "kraemer-langenbach-belz", "allen-cunneen", "sakasegawa", "cosmetatos", "kimura"]


class Line(NamedTuple):
    """What the formulas know: rates in services, so that a service takes 1 on average."""

    load: float
    servers: int
    arrival_scv: float
    service_scv: float

    @property
    def mean_scv(self) -> float:
        """(ca² + cs²) / 2."""
        return (self.arrival_scv + self.service_scv) / 2

    @property
    def mmc(self) -> float:
        """Mean wait of M/M/c at this load, in mean service times."""
        return erlang_c(self.load * self.servers, self.servers) / (self.servers * (1 - self.load))

    @property
    def mdc(self) -> float:
        """Exact mean wait of M/D/c at this load, in mean service times."""
        return mdc_mean_queue(self.load * self.servers, self.servers) / (self.load * self.servers)

    @property
    def dmc(self) -> float:
        """Exact mean wait of D/M/c at this load."""
        arrivals = self.load * self.servers
        idle = idle_root(arrivals, 0.0, float(self.servers))
        return wait_probability(arrivals, 0.0, 1.0, self.servers) / (self.servers * idle)


def _kingman(line: Line) -> float:
    return line.load / (1 - line.load) * line.mean_scv


def _kraemer_langenbach_belz(line: Line) -> float:
    rho, ca2, cs2 = line.load, line.arrival_scv, line.service_scv
    if ca2 + cs2 == 0:
        return 0.0
    if ca2 <= 1:
        exponent = -2 * (1 - rho) * (1 - ca2) ** 2 / (3 * rho * (ca2 + cs2))
    else:
        exponent = -(1 - rho) * (ca2 - 1) / (ca2 + 4 * cs2)
    return _kingman(line) * math.exp(exponent)


def _allen_cunneen(line: Line) -> float:
    return line.mmc * line.mean_scv


def _sakasegawa(line: Line) -> float:
    c = line.servers
    return line.load ** (math.sqrt(2 * (c + 1)) - 1) / (c * (1 - line.load)) * line.mean_scv


def _cosmetatos(line: Line) -> float:
    rho, c, mmc = line.load, line.servers, line.mmc
    constant = mmc / 2 * (1 + (1 - rho) * (c - 1) * (math.sqrt(4 + 5 * c) - 2) / (16 * rho * c))
    return line.service_scv * mmc + (1 - line.service_scv) * constant


def _kimura(line: Line) -> float:
    ca2, cs2, mmc = line.arrival_scv, line.service_scv, line.mmc
    if mmc == 0 or ca2 + cs2 == 0:
        return 0.0
    slowness = 2 * (ca2 + cs2 - 1) / mmc
    if ca2 < 1:
        slowness += (1 - ca2) / line.dmc
    return (ca2 + cs2) / (slowness + (1 - cs2) / line.mdc)


class Approximation(NamedTuple):
    """A formula and what is known of it.

    Attributes:
        wait: mean wait in services.
        source: who gave it.
        one_server: whether it is for one server only.
        most_arrival_scv, least_arrival_scv: the SCV of the gaps it is made for.
        misses: smallest and largest relative error over `known_errors` at loads of 0.8 and more, up to 16 servers.
    """

    wait: Callable[[Line], float]
    source: str
    one_server: bool
    least_arrival_scv: float
    most_arrival_scv: float
    misses: tuple[float, float]


APPROXIMATIONS: dict[Method, Approximation] = {
    "kingman": Approximation(_kingman, "Kingman 1961, heavy traffic", True, 0, math.inf, (-0.09, 0.11)),
    "kraemer-langenbach-belz": Approximation(
        _kraemer_langenbach_belz, "Kraemer & Langenbach-Belz 1976", True, 0, math.inf, (-0.16, 0.03)
    ),
    "allen-cunneen": Approximation(
        _allen_cunneen, "Allen, Probability, Statistics and Queueing Theory, 1990", False, 0, math.inf, (-0.41, 0.55)
    ),
    "sakasegawa": Approximation(_sakasegawa, "Sakasegawa 1977", False, 0, math.inf, (-0.34, 0.73)),
    "cosmetatos": Approximation(_cosmetatos, "Cosmetatos 1976", False, 1, 1, (-0.01, 0.01)),
    "kimura": Approximation(_kimura, "Kimura 1986", False, 0, 1, (-0.13, 0.0)),
}


def approximation(method: str) -> Approximation:
    """A formula by name, or `UnknownName`."""
    if not isinstance(method, str) or method not in APPROXIMATIONS:
        raise UnknownName("approximation", shown(method), APPROXIMATIONS)
    return APPROXIMATIONS[method]


class TwoMomentWaiting(Waiting):
    """G/G/c by approximation.

    Attributes:
        method: the formula.
        arrival_scv, service_scv: squared coefficients of variation of gaps and services.
        servers: c.
        wait_probability: Erlang C, which is itself an approximation here.
    """

    method: Method
    arrival_scv: float
    service_scv: float
    servers: int
    wait_probability: float

    def wait_exceeds(self, wait_s: float) -> float:
        """P(wait > t) if as many wait as in M/M/c and those wait exponentially: an approximation on top of one."""
        return delayed_exceeds(self.wait_probability, self._rate_per_s(), wait_s) if self.mean_wait_s else 0.0

    def wait_quantile_s(self, part: float) -> float:
        """The wait that this share of customers does not exceed, under the same assumptions."""
        return delayed_quantile_s(self.wait_probability, self._rate_per_s(), part) if self.mean_wait_s else 0.0

    def _rate_per_s(self) -> float:
        return self.wait_probability / self.mean_wait_s


def ggc(
    arrival_rate_per_s: float,
    arrival_scv: float,
    service_rate_per_s: float,
    service_scv: float,
    servers: int = 1,
    method: Method = "allen-cunneen",
) -> TwoMomentWaiting:
    """About how long do customers wait for c servers when only means and variances are known?

    Every such formula is an approximation: queues of the same two moments wait differently. `known_errors` compares it
    with exactly solvable cases; on bursty arrivals errors of 20 to 40 % are usual.

    Parameters:
        arrival_rate_per_s, service_rate_per_s: λ, and μ of each server.
        arrival_scv, service_scv: squared coefficients of variation of gaps and services.
        servers: c.
        method: the formula; "kingman" and "kraemer-langenbach-belz" are for one server, "cosmetatos" for Poisson
            arrivals (SCV 1), "kimura" for arrivals no burstier than Poisson.

    Raises:
        InputError: a case that the method is not made for, with the one to take. Unstable: the load is 1 or more.

    >>> round(ggc(3.2, 4.0, 1.0, 1.5, 4).mean_wait_s, 6)
    2.050237
    """
    chosen = approximation(method)
    arrivals, services = arrival_rate(arrival_rate_per_s), positive(service_rate_per_s, "service_rate_per_s")
    ca2, cs2 = not_negative(arrival_scv, "arrival_scv"), not_negative(service_scv, "service_scv")
    c = server_count(servers)
    if chosen.one_server and c > 1:
        raise InputError(f"is {c}, and {method} knows one server only", "take allen-cunneen", field="servers")
    if not chosen.least_arrival_scv <= ca2 <= chosen.most_arrival_scv:
        wanted = "Poisson arrivals (SCV 1)" if chosen.least_arrival_scv else "arrivals no burstier than Poisson"
        raise InputError(f"is {ca2:g}, and {method} is for {wanted}", "take allen-cunneen", field="arrival_scv")
    load = stable(f"G/G/{c}", arrivals, c * services, more_servers(arrivals / services))
    wait = chosen.wait(Line(load, c, ca2, cs2)) / services
    low, high = chosen.misses
    return TwoMomentWaiting(
        queue=f"G/G/{c} ({method})",
        kind="approximation",
        arrivals=f"renewal (SCV {ca2:g})",
        service=f"general (SCV {cs2:g})",
        source=chosen.source,
        known_error=f"{low:+.0%} to {high:+.0%} against {_WITNESSES}",
        **line(arrivals, load, wait, 1 / services),
        method=method,
        arrival_scv=ca2,
        service_scv=cs2,
        servers=c,
        wait_probability=erlang_c(arrivals / services, c),
    )
