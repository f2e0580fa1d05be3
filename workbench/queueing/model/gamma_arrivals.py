"""GI/M/c: exponential servers, arrivals of any burstiness with independent gamma gaps."""

from workbench.queueing.checking import arrival_rate, more_servers, not_negative, positive, server_count, stable
from workbench.queueing.kernels import gamma_arrivals
from workbench.queueing.model.answer import line
from workbench.queueing.model.delayed import ExponentiallyDelayed


class GammaArrivals(ExponentiallyDelayed):
    """GI/M/c with gamma gaps in its steady state, as arriving customers see it.

    Attributes:
        arrival_scv: squared coefficient of variation of the gaps; 1 is Poisson, 0 a clock.
        sigma: σ, the ratio of the geometric tail that arrivals see.
    """

    arrival_scv: float
    sigma: float


def gimc(arrival_rate_per_s: float, arrival_scv: float, service_rate_per_s: float, servers: int) -> GammaArrivals:
    """How long do customers wait for c exponential servers when arrivals come in bursts, or more evenly than Poisson?

    Parameters:
        arrival_rate_per_s: λ.
        arrival_scv: squared coefficient of variation of the gamma gaps (shape 1/SCV).
        service_rate_per_s: μ of each server.
        servers: c.

    Raises:
        InputError: a number that cannot be. Unstable: the load is 1 or more.

    >>> round(gimc(14.4, 4.0, 1.0, 16).mean_wait_s, 9)
    1.15051962
    """
    arrivals, services = arrival_rate(arrival_rate_per_s), positive(service_rate_per_s, "service_rate_per_s")
    scv, c = not_negative(arrival_scv, "arrival_scv"), server_count(servers)
    queue = f"GI/M/{c}"
    load = stable(queue, arrivals, c * services, more_servers(arrivals / services))
    idle = gamma_arrivals.idle_root(arrivals, scv, c * services)
    waits = gamma_arrivals.wait_probability(arrivals, scv, services, c)
    delayed = 1 / (c * services * idle)
    return GammaArrivals(
        queue=queue,
        kind="exact",
        arrivals=f"gamma renewal (SCV {scv:g})" if scv else "clockwork",
        service="exponential",
        source="Takács 1962; Gross & Harris, Fundamentals of Queueing Theory",
        **line(arrivals, load, waits * delayed, 1 / services),
        arrival_scv=scv,
        service_rate_per_s=services,
        servers=c,
        sigma=1 - idle,
        wait_probability=waits,
        mean_wait_of_delayed_s=delayed,
    )
