"""Figure 14: where the time of requests goes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.pools import serve
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Agree, Assumption, Ordering, experiment
from workbench.pooling.model.lowered import DONE, Outcome

SETUPS = {"16x0.1": (16, 0.1), "32x0.1": (32, 0.1), "64x0.1": (64, 0.1), "16x0.5": (16, 0.5), "32x0.5": (32, 0.5)}
PARTS = ("prefill wait", "prefill", "decode wait", "decode", "data")
SPAN_S = 60.0


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["parts"].filter(pl.col("backend") == tables["parts"]["backend"][0])
    mean = table.group_by("setup", "part", maintain_order=True).agg(pl.col("share").mean())
    waits = dict(mean.filter(pl.col("part") == "decode wait").select("setup", "share").iter_rows())
    data = float(mean.filter(pl.col("part") == "data")["share"].max())
    texts = [f"{share:.0%} at {setup}" for setup, share in waits.items()]
    said = f"Waiting for a turn takes {', '.join(texts)} of the requests' time"
    return f"{said}, and waiting for KV caches {data:.2%} at most."


@experiment(
    "aegaeon/fig14",
    title="Where does a request's time go?",
    question="How much of the requests' time is waiting for the prompt, the prompt, waiting for a turn, decoding, and "
    "waiting for KV caches?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 1.0, "simpy": 4.0},
    draw="pooling_runs.parts",
    say=_say,
    stochastic=True,
    orderings=(
        Ordering(
            "the share of waiting for a turn grows with the models",
            tuple(f"share of time, decode wait, {setup}" for setup in ("16x0.1", "32x0.1", "64x0.1")), "",
            (Assumption("one draw of requests for all set-ups", {"arrivals": "poisson"}),),
        ),
        Ordering(
            "data transfers take less than waiting for a turn, at 64 models",
            ("share of time, data, 64x0.1", "share of time, decode wait, 64x0.1"),
        ),
    ),
    agrees=(
        Agree("share of time", "parts", ("setup", "part"), "share", {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def fig14(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    variant: pools.Way = "paper",
    arrivals: pools.Arrivals = "artifact",
    prefill: pools.Prefill = 6,
    quota_s: pools.Quota = 4.0,
) -> dict[str, pl.DataFrame]:
    """Shares of the summed time of requests, from arrival to last token, by part, for five set-ups.

    Data is time of a turn in which its model was there and a KV cache was not. Messages of schedulers cost nothing.
    """
    setups = {"16x0.1": SETUPS["16x0.1"]} if context.backend == "simpy" else SETUPS
    rows = []
    for setup, (models, rate) in setups.items():
        context.tell(setup)
        run = serve(context, models, rate, SPAN_S, cluster=cluster, variant=variant, generator=arrivals, lead=prefill,
                    quota_s=quota_s)  # fmt: skip
        parts = parts_of(run.outcome, run.lowered.requests.arrival_s)
        whole = sum(parts.values())
        rows += [
            {"setup": setup, "part": part, "seconds": seconds, "share": seconds / whole}
            for part, seconds in parts.items()
        ]
    known = [(f"share of time, {row['part']}, {row['setup']}", "", row["share"], "1") for row in rows]
    known += [(f"seconds of all requests, {row['part']}, {row['setup']}", "", row["seconds"], "s") for row in rows]
    return {"parts": pl.DataFrame(rows), "headline": headline(known)}


def parts_of(out: Outcome, arrival_s: np.ndarray) -> dict[str, float]:
    """Seconds of all requests that are done, by part; they add up to their time from arrival to finish."""
    done = out.status == DONE
    lived = (out.finish_s - arrival_s)[done].sum()
    known = {
        "prefill wait": out.wait_s[done].sum(),
        "prefill": out.prefill_s[done].sum(),
        "decode": out.decode_s[done].sum(),
        "data": out.waited_s[done].sum(),
    }
    waited = lived - sum(known.values())
    return {part: float(known.get(part, waited)) for part in PARTS}
