"""Traces out of an arrival process and a length model."""

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.records import positive, shown, whole
from workbench.workloads.building.assembling import COLUMNS, DEFAULT_MODEL
from workbench.workloads.generators.lengths import LengthModel
from workbench.workloads.generators.prefixes import SharedPrefixes
from workbench.workloads.generators.process import MOST, ArrivalProcess
from workbench.workloads.generators.streams import Seed, stream
from workbench.workloads.handle import Trace
from workbench.workloads.ledger import SCHEMA
from workbench.workloads.origin import Origin

_STRETCH, _DOUBLINGS = 1.3, 60
_GIVE = {
    "arrivals": "an arrival process such as Poisson(rate_per_s=2)",
    "lengths": "a length model such as fixed_lengths(512, 128)",
    "prefixes": "SharedPrefixes(...) or None",
    "name": "a text",
    "model": "a text",
}


def generate(
    arrivals: ArrivalProcess,
    lengths: LengthModel,
    *,
    duration_s: float | None = None,
    requests: int | None = None,
    seed: Seed = 0,
    model: str = DEFAULT_MODEL,
    prefixes: SharedPrefixes | None = None,
    name: str = "generated",
) -> Trace:
    """A trace of requests that nobody sent.

    Arrivals, lengths and prefixes come from streams of their own, so changing one leaves the others as they were.

    Parameters:
        arrivals: when requests come, for example `Poisson(rate_per_s=2)`.
        lengths: how long they are, for example `fixed_lengths(512, 128)` or `lengths_of(trace)`.
        duration_s: span to draw arrivals in; the first one becomes time 0.
        requests: instead of a duration, how many requests to draw.
        seed: a whole number or a SeedSequence.
        model: what all requests ask for, unless the length model says.
        prefixes: adds prefix hashes.
        name: of the trace.

    Raises:
        UserError: when neither or both of duration and requests are given, or nothing arrives.
        InputError: for a number, a seed or a part of the wrong kind; for more requests than a finite process has.
    """
    for part, kind, field in ((arrivals, ArrivalProcess, "arrivals"), (name, str, "name"), (model, str, "model")):
        if not isinstance(part, kind):
            raise InputError(f"is {shown(part)}", f"give {_GIVE[field]}", field=field)
    if (duration_s is None) == (requests is None):
        raise UserError("Give either duration_s or requests.")
    if requests is not None:
        times_s = _first(arrivals, requests, seed)
    else:
        times_s = arrivals.times(positive(duration_s, "duration_s"), stream(seed, "arrivals"))
    return made(times_s, lengths, seed, model, prefixes, Origin(name=name, format="generated"))


def made(
    times_s: np.ndarray,
    lengths: LengthModel,
    seed: Seed,
    model: str | pl.Series,
    prefixes: SharedPrefixes | None,
    origin: Origin,
) -> Trace:
    """The trace of drawn arrival times, with lengths drawn from the seed's own stream."""
    for part, kind, field in ((lengths, LengthModel, "lengths"), (prefixes, SharedPrefixes | None, "prefixes")):
        if not isinstance(part, kind):
            raise InputError(f"is {shown(part)}", f"give {_GIVE[field]}", field=field)
    if not times_s.size:
        raise UserError(f"No request of {origin.name} arrives in the span; make it longer or the rate higher.")
    drawn = lengths.draw(times_s.size, stream(seed, "lengths"))
    models = drawn.models if drawn.models is not None else model
    columns = {
        "request_id": pl.Series(np.arange(times_s.size)),
        "model": pl.lit(models, dtype=pl.String) if isinstance(models, str) else models,
        "arrival_s": pl.Series(times_s - times_s[0]),
        "prompt_tokens": pl.Series(drawn.prompt_tokens),
        "output_tokens": pl.Series(drawn.output_tokens),
    }
    table = pl.DataFrame({"request_id": columns["request_id"]}).with_columns(**columns).select(COLUMNS)
    if prefixes is not None:
        table = table.with_columns(prefixes.draw(drawn.prompt_tokens, stream(seed, "prefixes")))
    return Trace(
        requests=table,
        defects=pl.DataFrame(schema=SCHEMA),
        origin=origin.model_copy(
            update={
                "start_s": float(times_s[0]),
                "rows_read": times_s.size,
                "block_tokens": None if prefixes is None else prefixes.block_tokens,
            }
        ),
    )


def _first(arrivals: ArrivalProcess, requests: int, seed: Seed) -> np.ndarray:
    """The first arrivals of a span that is long enough, whichever length that takes."""
    requests = whole(requests, "requests", 1, MOST)
    if requests > arrivals.total:
        problem = f"is {requests:,} where the process has {arrivals.total:,} arrivals in all"
        raise InputError(problem, "ask for no more, or for duration_s", field="requests")
    duration_s = _STRETCH * requests / positive(arrivals.mean_rate_per_s, "mean_rate_per_s")
    for _ in range(_DOUBLINGS):
        times_s = arrivals.times(positive(duration_s, "duration_s"), stream(seed, "arrivals"))
        if times_s.size >= requests:
            return times_s[:requests]
        duration_s *= 2.0
    problem = f"is {requests:,} where {times_s.size:,} arrive in {duration_s / 2.0:.3g} s"
    raise InputError(problem, "ask for no more, or for duration_s", field="requests")
