"""M/G/1: one server, any service times."""

from workbench.queueing.checking import arrival_rate, stable
from workbench.queueing.distributions import Distribution, TwoMoments, distribution
from workbench.queueing.model.answer import Waiting, line


class GeneralService(Waiting):
    """M/G/1 in its steady state.

    Attributes:
        mean_service_s, service_scv: of the service times.
        mean_residual_s: mean rest of the service that an arrival finds under way.
        wait_second_moment_s2: E[wait^2], None where only two moments of the service are known.
    """

    mean_service_s: float
    service_scv: float
    mean_residual_s: float
    wait_second_moment_s2: float | None

    @property
    def wait_variance_s2(self) -> float | None:
        """Variance of the wait, None where only two moments of the service are known."""
        if self.wait_second_moment_s2 is None:
            return None
        return self.wait_second_moment_s2 - self.mean_wait_s**2


def mg1(arrival_rate_per_s: float, service: Distribution) -> GeneralService:
    """How long do customers wait for one server whose services take any time, first come first served?

    Pollaczek and Khinchine: mean wait λ E[S^2] / (2(1-ρ)), second moment 2 (mean)^2 + λ E[S^3] / (3(1-ρ)).

    Parameters:
        arrival_rate_per_s: λ of the Poisson arrivals.
        service: their service times; `TwoMoments` is enough for means.

    Raises:
        InputError: a number that cannot be. Unstable: the load is 1 or more.

    >>> from workbench.queueing import Gamma
    >>> round(mg1(0.8, Gamma(mean_s=1.0, scv=0.25)).mean_response_s, 12)
    3.5
    """
    service = distribution(service, "service")
    arrivals, mean = arrival_rate(arrival_rate_per_s), service.mean_s
    load = stable("M/G/1", arrivals, 1 / mean)
    wait = arrivals * service.moment(2) / (2 * (1 - load))
    second = None
    if not isinstance(service, TwoMoments):
        second = 2 * wait**2 + arrivals * service.moment(3) / (3 * (1 - load))
    return GeneralService(
        queue="M/G/1",
        kind="exact",
        arrivals="Poisson",
        service=service.label,
        source="Pollaczek 1930, Khinchine 1932; Kleinrock, Queueing Systems 1",
        **line(arrivals, load, wait, mean),
        mean_service_s=mean,
        service_scv=service.scv,
        mean_residual_s=service.moment(2) / (2 * mean),
        wait_second_moment_s2=second,
    )
