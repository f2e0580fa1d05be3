"""Poisson arrivals and exponential services: M/M/1 and M/M/c, with their whole distributions."""

import math

import numpy as np

from workbench.queueing.checking import arrival_rate, more_servers, positive, server_count, stable, whole
from workbench.queueing.kernels import erlang
from workbench.queueing.kernels.levels import level_probabilities
from workbench.queueing.model.answer import line
from workbench.queueing.model.delayed import ExponentiallyDelayed

_SOURCE = "Erlang 1917; Gross & Harris, Fundamentals of Queueing Theory; Kleinrock, Queueing Systems 1"


class ExponentialServers(ExponentiallyDelayed):
    """M/M/c in its steady state.

    Attributes:
        offered_load: a = λ/μ, the mean number of busy servers.
        erlang_b: share that c servers without a queue would turn away.
        wait_probability: Erlang C, share of customers that wait.
        ln_empty_probability: natural logarithm of P(nobody in the system), which itself may be as small as e^-10000.
    """

    offered_load: float
    erlang_b: float
    ln_empty_probability: float

    @property
    def empty_probability(self) -> float:
        """P(nobody in the system); 0 where it is too small for a float."""
        return math.exp(self.ln_empty_probability)

    @property
    def wait_variance_s2(self) -> float:
        """Variance of the wait."""
        return self.wait_probability * (2 - self.wait_probability) * self.mean_wait_of_delayed_s**2

    @property
    def response_variance_s2(self) -> float:
        """Variance of the time in the system."""
        return self.wait_variance_s2 + 1 / self.service_rate_per_s**2

    @property
    def in_system_variance(self) -> float:
        """Variance of the number in the system."""
        levels, extra = self._levels(), self.utilisation / (1 - self.utilisation)
        spread = np.square(np.arange(self.servers) - self.mean_in_system) @ levels[:-1]
        over = self.servers - self.mean_in_system
        return float(spread + levels[-1] * (over**2 + 2 * over * extra + extra * (1 + 2 * extra)))

    def in_system_at_least(self, customers: int) -> float:
        """P(that many customers or more in the system)."""
        customers = whole(customers, "customers", 0)
        if customers >= self.servers:
            return self.wait_probability * self.utilisation ** (customers - self.servers)
        return float(self._levels()[customers:].sum())

    def _levels(self) -> np.ndarray:
        leave = self.service_rate_per_s * np.arange(1.0, self.servers + 1)
        levels = np.empty(self.servers + 1)
        level_probabilities(self.arrival_rate_per_s, leave, True, levels)
        return levels


def mm1(arrival_rate_per_s: float, service_rate_per_s: float) -> ExponentialServers:
    """How long do customers wait for one exponential server? `mmc` with one server, whose parameters and errors it has.

    >>> one = mm1(0.8, 1.0)
    >>> round(one.mean_wait_s, 6), round(one.response_quantile_s(0.5), 6)
    (4.0, 3.465736)
    """
    return mmc(arrival_rate_per_s, service_rate_per_s, 1)


def mmc(arrival_rate_per_s: float, service_rate_per_s: float, servers: int) -> ExponentialServers:
    """How long do customers wait for one of c like exponential servers, first come first served?

    Parameters:
        arrival_rate_per_s: λ.
        service_rate_per_s: μ of each server.
        servers: c; stable up to any number, 10,000 included.

    Raises:
        `InputError` for numbers that are none; `Unstable` for λ >= cμ.

    >>> three = mmc(2.0, 1.0, 3)
    >>> round(three.wait_probability, 6), round(three.mean_wait_s, 6), round(three.wait_quantile_s(0.99), 4)
    (0.444444, 0.444444, 3.7942)
    """
    arrivals, services = arrival_rate(arrival_rate_per_s), positive(service_rate_per_s, "service_rate_per_s")
    c = server_count(servers)
    load = stable(f"M/M/{c}", arrivals, c * services, more_servers(arrivals / services))
    offered = arrivals / services
    waits = erlang.erlang_c(offered, c)
    spare = c * services - arrivals
    # p0 = C (1-ρ) c! / a^c; C as a float is too small to divide by where hardly anyone waits
    ln_empty = -offered
    if waits > 1e-290:
        ln_empty = math.log(waits) + math.log1p(-load) + math.lgamma(c + 1) - c * math.log(offered)
    return ExponentialServers(
        queue=f"M/M/{c}",
        kind="exact",
        arrivals="Poisson",
        service="exponential",
        source=_SOURCE,
        **line(arrivals, load, waits / spare, 1 / services),
        service_rate_per_s=services,
        servers=c,
        offered_load=offered,
        erlang_b=erlang.erlang_b(offered, c),
        wait_probability=waits,
        mean_wait_of_delayed_s=1 / spare,
        ln_empty_probability=ln_empty,
    )
