"""Several traces as one workload."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
import polars as pl

from workbench.errors import UserError
from workbench.workloads.facts import same_data
from workbench.workloads.handle import Trace
from workbench.workloads.origin import Origin
from workbench.workloads.scaling.joining import hashes_apart

_WEEK_S = 7 * 86_400.0


def merge(traces: Mapping[str, Trace], align: Literal["start", "hour-of-week"] = "start") -> Trace:
    """Lay traces of different services over each other, each under a model name of its own.

    Prefix hashes are kept where all traces have them for blocks of the same size, priorities where all have them.

    Parameters:
        traces: by the model that their requests then ask for.
        align: start (all begin together) or hour-of-week (each keeps its weekday and time of day, so that weeks which
            were recorded apart fall on each other); the second needs absolute times.

    Raises:
        UserError: for traces that hold the same requests under two names, or without the times asked for.
    """
    if len(traces) < 2:
        raise UserError("Give at least two traces to merge.")
    if align not in ("start", "hour-of-week"):
        raise UserError(f"Traces can be aligned by start or hour-of-week, not by {align!r}.")
    names = [trace.origin.name for trace in traces.values()]
    for place, name in enumerate(names):
        for other in names[:place]:
            if name != other and same_data(name, other):
                raise UserError(f"{name} and {other} hold the same requests; merging them would count each twice.")
    arrivals = pl.col("arrival_s")
    parts = []
    for model, trace in traces.items():
        moved = arrivals if align == "start" else (arrivals + _since_week_start(trace)) % _WEEK_S
        parts.append(trace.requests.with_columns(pl.lit(model).alias("model"), moved))
    blocks = {trace.origin.block_tokens for trace in traces.values()}
    if len(blocks) > 1 or not all("prefix_hashes" in part.columns for part in parts):
        parts = [part.drop("prefix_hashes", strict=False) for part in parts]
    if not all("priority" in part.columns for part in parts):
        parts = [part.drop("priority", strict=False) for part in parts]
    joined = pl.concat([part.drop("request_id") for part in hashes_apart(parts)]).sort("arrival_s", maintain_order=True)
    requests = joined.select(
        pl.Series("request_id", np.arange(joined.height)),
        pl.all().exclude("arrival_s"),
        (pl.col("arrival_s") - joined["arrival_s"][0]).alias("arrival_s"),
    )
    origins = [trace.origin for trace in traces.values()]
    origin = Origin(
        name=" + ".join(names),
        format="merged",
        stand_in=any(entry.stand_in for entry in origins),
        source="; ".join(dict.fromkeys(entry.source for entry in origins if entry.source)),
        licence="; ".join(dict.fromkeys(entry.licence for entry in origins if entry.licence)),
        citation="; ".join(dict.fromkeys(entry.citation for entry in origins if entry.citation)),
        rows_read=sum(entry.rows_read for entry in origins),
        block_tokens=blocks.pop() if len(blocks) == 1 else None,
        notes=tuple(dict.fromkeys(note for entry in origins for note in entry.notes)),
    )
    defects = pl.concat([trace.defects for trace in traces.values()])
    return Trace(requests=requests.select(parts[0].columns), defects=defects, origin=origin)


def _since_week_start(trace: Trace) -> float:
    if trace.origin.clock != "utc":
        raise UserError(f'{trace.origin.name} has no absolute times to align by hour of week; use align="start".')
    if trace.requests["arrival_s"][-1] > _WEEK_S:
        raise UserError(f"{trace.origin.name} is longer than a week; cut it to one before aligning by hour of week.")
    return trace.origin.start_s % _WEEK_S
