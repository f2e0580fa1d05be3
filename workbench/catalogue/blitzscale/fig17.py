"""Figure 17: TTFT and TBT on three workloads, by BlitzScale, ServerlessLLM and AllCache."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.evaluating import (
    BLITZ,
    BURST,
    CACHED,
    CODE,
    CONV,
    EACH,
    NOT_BURST,
    ONE,
    PROMISES,
    PROMPTS,
    RUNS,
    SCALED_TOO,
    SLLM,
    SLLM_30,
    THERE,
    WORKLOADS,
    Decode,
    Largest,
    Load,
    Statistic,
    Waits,
    Window,
    Workloads,
    swept,
)
from workbench.catalogue.blitzscale.telling import TBT, TTFT, told
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Assumption, Match, Ordering, experiment

SYSTEMS = (BLITZ, SLLM, SLLM_30, CACHED)
AGAINST = {SLLM: "against ServerlessLLM", CACHED: "against AllCache"}
OVER_ALL = "over the three workloads"

_SHORT = Assumption("a run takes five minutes, in which loads from SSDs weigh little", {"window_s": 120.0})
_LOAD = Assumption(
    "half of the largest load is by promises kept, not by prompts computed",
    {"largest_by": PROMPTS, "workloads": (CODE.name,)},
)
_LOADED = {
    one.name: Assumption(
        "the load is half of the largest, at which many starts find the weights in their host's memory",
        {"load": 0.75, "workloads": (one.name,)},
    )
    for one in (CODE, CONV)
}
_LOAD_P99 = Assumption(
    "half of the largest load is by promises kept, not by prompts computed, and TBT is told by its P95",
    {"largest_by": PROMPTS, "statistic": "P99", "workloads": (CODE.name,)},
)
_DECODE = Assumption(
    "instances that turn from prompts to decoding finish first what they have, so that BlitzScale's requests wait for "
    "instances that decode as long as those of all others; where the load is by prompts and TBT told by its P99, that "
    "is what counts",
    {"decode": THERE, "largest_by": PROMPTS, "statistic": "P99", "workloads": (CODE.name,)},
)
_QUEUE = Assumption("prompts wait in one queue until an instance is free", {"waits": EACH, "workloads": (CODE.name,)})


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["totals"].group_by("workload", "system", maintain_order=True).agg(pl.col(f"{TTFT} P95").mean())
    parts = []
    for (workload,), part in table.group_by("workload", maintain_order=True):
        found = dict(part.select("system", f"{TTFT} P95").iter_rows())
        parts.append(f"{workload} {found[BLITZ]:.2g} s against {found[SLLM]:.2g} s ({found[CACHED]:.2g} s from memory)")
    return f"P95 of TTFT by BlitzScale and by ServerlessLLM: {'; '.join(parts)}."


@experiment(
    "blitzscale/fig17",
    title="TTFT and TBT on three workloads",
    question="How much sooner does a first token come when instances scale live over the network?",
    backends=("compiled",),
    seconds={"compiled": 6.0},
    draw="evaluated.fig17",
    panels=tuple(f"{kind} {name}" for name in WORKLOADS for kind in ("rate", "time", "ttft", "tbt", "starts", "harm")),
    say=_say,
    stochastic=True,
    replications=RUNS,
    matches=(
        Match(tuple(f"{TTFT} reduction {text}" for text in AGAINST.values()),
              incomparable=NOT_BURST | {OVER_ALL: NOT_BURST[BURST.name]},
              assumptions=(_LOAD, _SHORT, *_LOADED.values(), _QUEUE)),
        Match(tuple(f"{TBT} reduction {text}" for text in AGAINST.values()), incomparable=NOT_BURST,
              assumptions=(_LOAD, _LOAD_P99, _DECODE, _QUEUE)),
    ),
    orderings=tuple(
        Ordering(
            f"TTFT of {one.name}: BlitzScale below AllCache below ServerlessLLM",
            tuple(f"{TTFT}, {name}" for name in (BLITZ, CACHED, SLLM)),
            x=one.name,
            assumptions=(_LOADED[one.name],),
        )
        for one in (CODE, CONV)
    ),
)  # fmt: skip
def fig17(
    context: Context,
    *,
    workloads: Workloads = tuple(WORKLOADS),
    load: Load = 0.5,
    largest_by: Largest = PROMISES,
    window_s: Window = 300.0,
    statistic: Statistic = "P95",
    decode: Decode = SCALED_TOO,
    waits: Waits = ONE,
) -> dict[str, pl.DataFrame]:
    """Requests, mean TTFT and TBT by second, distributions, three times of each start, TBT during and outside starts.

    Every run begins at a random request of the trace, with the fewest instances; all systems see the same window. The
    host cache of ServerlessLLM keeps weights for 300 s (the paper's text) and for 30 s (its artifact). KV that stays on
    instances that turn to decode, as `decode` may say, hardly moves TBT of AzureCode, and that of all systems alike: it
    is no reason for the gap. Prompts wait in one queue for whoever is free and are computed in batches of up to 4,096
    tokens, as in the artifact; `waits` gives them away as they come instead.
    """
    tables = told(swept(context, workloads, SYSTEMS, load, largest_by, window_s, decode=decode, waits=waits))
    known = []
    for name in workloads:
        rows = {row["system"]: row for row in tables["totals"].filter(workload=name).to_dicts()}
        for what in (TTFT, TBT):
            column = f"{what} {statistic}"
            known += [(f"{what}, {system}", name, rows[system][column], "s") for system in SYSTEMS]
            for other, text in AGAINST.items():
                value = 1 - rows[BLITZ][column] / rows[other][column]
                mark = " [acceptance]" if (what, other) == (TTFT, CACHED) and name in (CODE.name, CONV.name) else ""
                known.append((f"{what} reduction {text}{mark}", name, value, "1"))
    gains = [value for series, _, value, _ in known if series == f"{TTFT} reduction {AGAINST[SLLM]}"]
    known.append((f"{TTFT} reduction {AGAINST[SLLM]}", OVER_ALL, float(np.mean(gains)), "1"))
    return tables | {"headline": headline(known)}
