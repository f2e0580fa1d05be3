"""Bounds on the mean wait at one server that hold for all independent gaps and services."""

from workbench.queueing.checking import arrival_rate, not_negative, positive, stable
from workbench.queueing.model.answer import Answer


class WaitBounds(Answer):
    """Between which values the mean wait lies.

    Attributes:
        lower_s, upper_s: the mean wait is at least and at most this.
    """

    lower_s: float
    upper_s: float


def gg1_bounds(
    arrival_rate_per_s: float, arrival_scv: float, service_rate_per_s: float, service_scv: float
) -> WaitBounds:
    """Between which values does the mean wait at one server lie, whatever the distributions?

    Upper: Kingman 1962, λ(σa² + σs²) / (2(1-ρ)). Lower: Marchal 1978, (ρ² cs² - ρ(2-ρ)) / (2λ(1-ρ)), never below 0.

    Parameters:
        arrival_rate_per_s, service_rate_per_s: λ and μ.
        arrival_scv, service_scv: squared coefficients of variation of gaps and services.

    >>> round(gg1_bounds(0.8, 4.0, 1.0, 2.0).upper_s, 12)
    16.5
    """
    arrivals, services = arrival_rate(arrival_rate_per_s), positive(service_rate_per_s, "service_rate_per_s")
    ca2, cs2 = not_negative(arrival_scv, "arrival_scv"), not_negative(service_scv, "service_scv")
    load = stable("G/G/1", arrivals, services)
    return WaitBounds(
        queue="G/G/1",
        kind="bound",
        arrivals=f"renewal (SCV {ca2:g})",
        service=f"general (SCV {cs2:g})",
        source="Marchal 1978 (lower), Kingman 1962 (upper)",
        lower_s=max(0.0, (load**2 * cs2 - load * (2 - load)) / (2 * arrivals * (1 - load))),
        upper_s=arrivals * (ca2 / arrivals**2 + cs2 / services**2) / (2 * (1 - load)),
    )
