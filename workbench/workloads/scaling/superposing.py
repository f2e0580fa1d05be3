"""More load by laying shifted copies over each other."""

import numpy as np
import polars as pl

from workbench.errors import UserError
from workbench.records import whole
from workbench.workloads.generators.process import MOST
from workbench.workloads.generators.streams import Seed, stream
from workbench.workloads.handle import Trace
from workbench.workloads.scaling.joining import hashes_apart
from workbench.workloads.scaling.reporting import changed


def superpose(trace: Trace, copies: int, seed: Seed | None = None) -> Trace:
    """Add up copies of a trace, each shifted round the clock: load as from more users of the same kind.

    Independent users smooth each other out, so peak over mean falls. Each request keeps its lengths; copies share no
    prefix with each other.

    Parameters:
        trace: to scale.
        copies: how many in all, at least 1.
        seed: draws the shifts at random; without it they are equal parts of the span.

    Raises:
        UserError: all requests arrive at once. InputError: no whole number of copies.
    """
    copies = whole(copies, "copies", 1, MOST // len(trace))
    times_s = trace.requests["arrival_s"].to_numpy()
    if times_s[-1] <= 0:
        raise UserError(f"{trace.origin.name} has no span to shift copies in; its requests all arrive at once.")
    round_s = times_s[-1] * len(trace) / (len(trace) - 1)
    if seed is None:
        shifts_s = np.arange(copies) * (round_s / copies)
    else:
        shifts_s = np.append(0.0, stream(seed, "choice").random(copies - 1)) * round_s
    parts = [
        trace.requests.with_columns(arrival_s=pl.Series((times_s + shift_s) % round_s)) for shift_s in shifts_s.tolist()
    ]
    joined = pl.concat(hashes_apart(parts)).sort("arrival_s", maintain_order=True)
    requests = joined.with_columns(
        request_id=pl.Series(np.arange(joined.height)), arrival_s=pl.col("arrival_s") - joined["arrival_s"][0]
    )
    parameters = {"copies": copies, "shifts": "equal" if seed is None else f"random, seed {seed}"}
    return changed(trace, requests, "superpose", parameters)
