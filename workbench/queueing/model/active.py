"""How many of many models are busy at once: the bound on pooling by whole requests."""

import math

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import levels, share, vector
from workbench.queueing.kernels.at_once import count_probabilities
from workbench.queueing.model.answer import Answer

MOST_MODELS = 100_000
"""Models whose number of active ones has a distribution that is computed in a second or two."""


class ActiveModels(Answer):
    """The number of models that have a request in flight at a random instant.

    Attributes:
        models: how many there are.
        offered_load: mean number of requests in flight, all models together.
        mean_active: mean number of models with at least one.
        variance_active: its variance.
        pooling_ratio: models over mean_active.
        active_probability: float64[models], of each model, not descending.
        count_probability: float64[models + 1], P(k active) for k = 0 to models.
    """

    models: int
    offered_load: float
    mean_active: float
    variance_active: float
    pooling_ratio: float
    active_probability: np.ndarray
    count_probability: np.ndarray

    def quantile(self, part: float) -> int:
        """The number of active models that is not exceeded in this share of time."""
        part = share(part, "part")
        return int(np.searchsorted(np.cumsum(self.count_probability), part * (1 - 1e-15)))

    def band(self, part: float = 0.95) -> tuple[int, int]:
        """Central range of the number of active models that holds at least this share of time."""
        outside = (1 - share(part, "part")) / 2
        return self.quantile(outside), self.quantile(1 - outside)


def active_models(arrival_rates_per_s, active_s, models: int | None = None) -> ActiveModels:
    """How many models are busy at once when each has Poisson requests that never wait?

    A model is busy unless its M/G/∞ queue is empty: P(busy) = 1 - exp(-λT), whatever the distribution of T. It stops
    being exact once requests wait. Source: Aegaeon (SOSP 2025) Theorem 3.1; unequal rates by independence.

    Parameters:
        arrival_rates_per_s: λ of each model; one number for like models (then give `models`).
        active_s: T, mean time a request keeps its model busy; one number, or one per model.
        models: how many, where one number stands for all.

    Raises:
        InputError: a number that cannot be, or lists of unequal length.

    >>> hundred = active_models(0.037, 16.79, 100)
    >>> round(hundred.mean_active, 4), hundred.quantile(0.99), hundred.band()
    (46.2717, 58, (37, 56))
    """
    rates, times = vector(arrival_rates_per_s, "arrival_rates_per_s"), vector(active_s, "active_s", above=True)
    given = max(rates.size, times.size) if models is None else models
    count = levels(given, "models", most=MOST_MODELS)
    for values, name in ((rates, "arrival_rates_per_s"), (times, "active_s")):
        if values.size not in (1, count):
            raise InputError(f"holds {values.size} numbers for {count} models", "give one, or one each", field=name)
    if not rates.any():
        raise InputError(
            "is 0: nobody ever asks for any model, so none is ever active and there is nothing to pool",
            "give at least one rate above 0",
            field="arrival_rates_per_s",
        )
    load = np.broadcast_to(rates * times, count)
    busy = np.sort(-np.expm1(-load))
    counts = np.empty(count + 1)
    count_probabilities(busy, counts)
    mean = math.fsum(busy)
    return ActiveModels(
        queue=f"{count} x M/G/∞",
        kind="exact",
        arrivals="Poisson",
        service="general",
        source="Aegaeon (SOSP 2025) Theorem 3.1; M/G/∞",
        models=count,
        offered_load=math.fsum(load),
        mean_active=mean,
        variance_active=math.fsum(busy * np.exp(-np.sort(load))),
        pooling_ratio=count / mean,
        active_probability=busy,
        count_probability=counts,
    )
