"""Constant services: M/D/1 with its distribution of waits, and the exact mean of M/D/c."""

import math

import numpy as np

from workbench.errors import InputError, UserError
from workbench.queueing.checking import (
    MOST_LEVELS,
    arrival_rate,
    more_servers,
    not_negative,
    positive,
    server_count,
    share,
    stable,
)
from workbench.queueing.kernels.constant_service import md1_wait_cdf, md1_waiting_levels, mdc_mean_queue
from workbench.queueing.model.answer import Waiting, line


class ConstantService(Waiting):
    """M/D/c in its steady state.

    Attributes:
        service_s: D, what every service takes.
        servers: c.
    """

    service_s: float
    servers: int


class OneConstantServer(ConstantService):
    """M/D/1 in its steady state, with the distribution of its waits."""

    def wait_exceeds(self, wait_s: float) -> float:
        """P(wait > t)."""
        services = not_negative(wait_s, "wait_s") / self.service_s
        return max(0.0, 1 - md1_wait_cdf(services, self.utilisation, self._levels(math.floor(services) + 1)))

    def wait_quantile_s(self, part: float) -> float:
        """The wait that this share of customers does not exceed; 0 where that many do not wait at all."""
        part = share(part, "part")
        if part > 1 - 1e-12:
            raise InputError(f"is {part!r}", "ask for at most 1 - 1e-12, where the digits end", field="part")
        if part <= 1 - self.utilisation:
            return 0.0
        levels = self._levels(64)
        while levels[-1] < part:  # P(wait <= k services) is P(at most k - 1 wait)
            levels = self._levels(4 * levels.size)
        high = int(np.searchsorted(levels, part)) + 1.0
        low = high - 1
        while low < (middle := 0.5 * (low + high)) < high:
            if md1_wait_cdf(middle, self.utilisation, levels) < part:
                low = middle
            else:
                high = middle
        return high * self.service_s

    def _levels(self, count: int) -> np.ndarray:
        if count > MOST_LEVELS:
            raise UserError(
                f"The waits of M/D/1 are followed up to {MOST_LEVELS:,} services, and this asks for more at a load of "
                f"{self.utilisation!r}; ask for a shorter wait or a smaller share."
            )
        levels = np.empty(count)
        md1_waiting_levels(self.utilisation, levels)
        return levels


def md1(arrival_rate_per_s: float, service_s: float) -> OneConstantServer:
    """How long do customers wait for one server that always takes the same time?

    Parameters:
        arrival_rate_per_s: λ of the Poisson arrivals.
        service_s: D.

    Raises:
        InputError: a number that cannot be. Unstable: the load is 1 or more.

    >>> half = md1(0.5, 1.0)
    >>> half.mean_wait_s, round(half.wait_quantile_s(0.9), 4)
    (0.5, 1.5157)
    """
    arrivals, service = arrival_rate(arrival_rate_per_s), positive(service_s, "service_s")
    load = stable("M/D/1", arrivals, 1 / service)
    return OneConstantServer(
        queue="M/D/1",
        kind="exact",
        arrivals="Poisson",
        service="constant",
        source="Erlang 1909; Franx 2001 (distribution by positive terms)",
        **line(arrivals, load, load * service / (2 * (1 - load)), service),
        service_s=service,
        servers=1,
    )


def mdc(arrival_rate_per_s: float, service_s: float, servers: int) -> ConstantService:
    """How long do customers wait on average for one of c servers that all take the same constant time?

    Parameters:
        arrival_rate_per_s: λ of the Poisson arrivals.
        service_s: D.
        servers: c.

    Raises:
        InputError: a number that cannot be. Unstable: the load is 1 or more.

    >>> round(mdc(3.6, 1.0, 4).mean_wait_s, 9)
    0.999965886
    """
    arrivals, service = arrival_rate(arrival_rate_per_s), positive(service_s, "service_s")
    c = server_count(servers)
    load = stable(f"M/D/{c}", arrivals, c / service, more_servers(arrivals * service))
    return ConstantService(
        queue=f"M/D/{c}",
        kind="exact",
        arrivals="Poisson",
        service="constant",
        source="Crommelin 1932",
        **line(arrivals, load, mdc_mean_queue(arrivals * service, c) / arrivals, service),
        service_s=service,
        servers=c,
    )
