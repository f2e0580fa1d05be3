"""Processor sharing: everyone inside is served at once, each by an equal part."""

from workbench.queueing.checking import arrival_rate, positive, stable
from workbench.queueing.model.answer import Answer


class ProcessorSharing(Answer):
    """M/G/1 under processor sharing in its steady state.

    Attributes:
        arrival_rate_per_s: λ.
        mean_service_s: mean time a job would take alone.
        utilisation: ρ.
        mean_response_s: mean time in the system; depends on the mean of the services only.
        mean_in_system: mean number of jobs that share.
        mean_slowdown: response over the time alone, the same for every size.
        response_variance_exponential_s2: variance of the response if, and only if, services are exponential.
    """

    arrival_rate_per_s: float
    mean_service_s: float
    utilisation: float
    mean_response_s: float
    mean_in_system: float
    mean_slowdown: float
    response_variance_exponential_s2: float

    def mean_response_of_s(self, service_s: float) -> float:
        """Mean response of a job that would take `service_s` alone."""
        return positive(service_s, "service_s") * self.mean_slowdown


def processor_sharing(arrival_rate_per_s: float, mean_service_s: float) -> ProcessorSharing:
    """How long does a job take when all jobs inside share one server equally?

    Parameters:
        arrival_rate_per_s: λ of the Poisson arrivals.
        mean_service_s: mean time a job takes alone; the shape of its distribution does not matter for means.

    Raises:
        InputError: a number that cannot be. Unstable: the load is 1 or more.

    >>> shared = processor_sharing(0.8, 1.0)
    >>> round(shared.mean_response_s, 9), round(shared.response_variance_exponential_s2, 4)
    (5.0, 58.3333)
    """
    arrivals, mean = arrival_rate(arrival_rate_per_s), positive(mean_service_s, "mean_service_s")
    load = stable("M/G/1 processor sharing", arrivals, 1 / mean)
    return ProcessorSharing(
        queue="M/G/1-PS",
        kind="exact",
        arrivals="Poisson",
        service="general",
        source="Kleinrock 1967 (means); Coffman, Muntz & Trotter 1970 (variance)",
        arrival_rate_per_s=arrivals,
        mean_service_s=mean,
        utilisation=load,
        mean_response_s=mean / (1 - load),
        mean_in_system=load / (1 - load),
        mean_slowdown=1 / (1 - load),
        response_variance_exponential_s2=mean**2 * (2 + load) / ((1 - load) ** 2 * (2 - load)),
    )
