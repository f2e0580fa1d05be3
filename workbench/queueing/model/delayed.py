"""Lines of exponential servers whose delayed customers wait exponentially, whatever the arrivals."""

from workbench.queueing.model.answer import Waiting
from workbench.queueing.model.tails import delayed_exceeds, delayed_quantile_s, quantile_of, response_exceeds


class ExponentiallyDelayed(Waiting):
    """A share of customers waits, for an exponential time; then comes an exponential service.

    Attributes:
        service_rate_per_s: μ, what one server completes while busy.
        servers: c.
        wait_probability: share of customers that wait.
        mean_wait_of_delayed_s: mean wait of those who wait.
    """

    service_rate_per_s: float
    servers: int
    wait_probability: float
    mean_wait_of_delayed_s: float

    def wait_exceeds(self, wait_s: float) -> float:
        """P(wait > t)."""
        return delayed_exceeds(self.wait_probability, 1 / self.mean_wait_of_delayed_s, wait_s)

    def wait_quantile_s(self, part: float) -> float:
        """The wait that this share of customers does not exceed."""
        return delayed_quantile_s(self.wait_probability, 1 / self.mean_wait_of_delayed_s, part)

    def response_exceeds(self, response_s: float) -> float:
        """P(wait and service together > t)."""
        rate = 1 / self.mean_wait_of_delayed_s
        return response_exceeds(self.wait_probability, rate, self.service_rate_per_s, response_s)

    def response_quantile_s(self, part: float) -> float:
        """The time in the system that this share of customers does not exceed."""
        return quantile_of(self.response_exceeds, part, self.mean_response_s)
