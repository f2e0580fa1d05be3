"""What a formula answers, and what it takes for granted: every record here says both."""

from typing import Literal

from workbench.records import Record

Kind = Literal["exact", "approximation", "bound"]
"""*exact*: the model's own value, to rounding. *approximation*: a formula known to miss it, see `known_error`.
*bound*: at or beyond the value on a stated side."""


class Answer(Record):
    """Base of all answers.

    Attributes:
        queue: Kendall's notation with the numbers in, such as "M/M/3".
        kind: see `Kind`.
        arrivals, service: the only arrivals and services for which `kind` holds.
        source: where the formula comes from.
        known_error: how far an approximation is known to miss; "" for exact values.
    """

    queue: str
    kind: Kind
    arrivals: str
    service: str
    source: str
    known_error: str = ""

    @property
    def label(self) -> str:
        """One line for a legend.

        >>> from workbench.queueing import mmc
        >>> mmc(2.0, 1.0, 3).label
        'M/M/3, exact for Poisson arrivals and exponential service'
        """
        return f"{self.queue}, {self.kind} for {self.arrivals} arrivals and {self.service} service"

    def label_on(self, arrivals: str) -> str:
        """The line for a legend where the answer is drawn on other arrivals, which it does not know.

        >>> from workbench.queueing import mmc
        >>> mmc(2.0, 1.0, 3).label_on("a recorded trace")
        'M/M/3, computed for Poisson arrivals, drawn on a recorded trace'
        """
        return f"{self.queue}, computed for {self.arrivals} arrivals, drawn on {arrivals}"


class Waiting(Answer):
    """A waiting line in its steady state.

    Attributes:
        arrival_rate_per_s: λ, of those who enter.
        utilisation: share of the servers' time that is busy.
        mean_wait_s: mean time before service starts.
        mean_response_s: mean time from arrival to the end of service.
        mean_waiting: mean number of customers waiting.
        mean_in_system: mean number waiting or in service.
    """

    arrival_rate_per_s: float
    utilisation: float
    mean_wait_s: float
    mean_response_s: float
    mean_waiting: float
    mean_in_system: float


def line(arrival_rate_per_s: float, load: float, mean_wait_s: float, mean_service_s: float) -> dict[str, float]:
    """The fields of `Waiting` from the mean wait, by Little's law."""
    mean_waiting = arrival_rate_per_s * mean_wait_s
    return {
        "arrival_rate_per_s": arrival_rate_per_s,
        "utilisation": load,
        "mean_wait_s": mean_wait_s,
        "mean_response_s": mean_wait_s + mean_service_s,
        "mean_waiting": mean_waiting,
        "mean_in_system": mean_waiting + arrival_rate_per_s * mean_service_s,
    }
