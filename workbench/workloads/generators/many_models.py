"""A market of many models, most of them rarely asked."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from workbench.errors import InputError
from workbench.records import not_negative, positive, shown, whole
from workbench.workloads.generators.lengths import LengthModel
from workbench.workloads.generators.making import made
from workbench.workloads.generators.poisson import Poisson
from workbench.workloads.generators.process import ArrivalProcess, checked_count
from workbench.workloads.generators.streams import Seed, stream
from workbench.workloads.handle import Trace
from workbench.workloads.origin import Origin

MOST_MODELS = 1_000_000


def zipf_rates(models: int, rate_per_s: float, exponent: float = 1.0) -> dict[str, float]:
    """Arrival rates of a long tail: that of the k-th model is proportional to k to the power of minus `exponent`.

    Parameters:
        models: how many; they are named model-001, model-002, ...
        rate_per_s: of all together.
        exponent: 0 makes all equal, larger ones the tail thinner.

    >>> {name: round(rate, 2) for name, rate in zipf_rates(3, 1.1).items()}
    {'model-001': 0.6, 'model-002': 0.3, 'model-003': 0.2}
    """
    models, rate_per_s = whole(models, "models", 1, MOST_MODELS), positive(rate_per_s, "rate_per_s")
    shares = np.arange(1, models + 1, dtype=float) ** -not_negative(exponent, "exponent")
    rates = rate_per_s * shares / shares.sum()
    digits = max(3, len(str(models)))
    return {f"model-{place:0{digits}d}": float(rate) for place, rate in enumerate(rates, start=1)}


def market(
    arrivals: Mapping[str, ArrivalProcess | float],
    lengths: LengthModel,
    *,
    duration_s: float,
    seed: Seed = 0,
) -> Trace:
    """Requests to many models, each with an arrival process and random stream of its own.

    Adding a model changes nothing about when the others are asked.

    Parameters:
        arrivals: process of each model by name, or just a rate for Poisson arrivals, for example from `zipf_rates`.
        lengths: of all requests.
        duration_s: span to draw arrivals in; the first one becomes time 0.
        seed: a whole number or a SeedSequence.

    Raises:
        InputError: no models, a model without a name, or a rate that cannot be.
    """
    if not isinstance(arrivals, Mapping) or not arrivals:
        raise InputError(f"is {shown(arrivals)}", "give at least one model's name with its process", field="arrivals")
    if unnamed := [model for model in arrivals if not isinstance(model, str)]:
        raise InputError(f"names a model {shown(unnamed[0])}", "give each model's name as a text", field="arrivals")
    duration_s = positive(duration_s, "duration_s")
    processes = [
        process if isinstance(process, ArrivalProcess) else Poisson(rate_per_s=process) for process in arrivals.values()
    ]
    checked_count(sum(min(process.mean_rate_per_s * duration_s, process.total) for process in processes))
    drawn = [process.times(duration_s, stream(seed, "arrivals", place)) for place, process in enumerate(processes)]
    times_s = np.concatenate(drawn)
    owners = np.repeat(np.arange(len(drawn)), [times.size for times in drawn])
    order = np.argsort(times_s, kind="stable")
    models = pl.Series("model", list(arrivals), dtype=pl.String)[owners[order]]
    return made(times_s[order], lengths, seed, models, None, Origin(name="market", format="generated"))
