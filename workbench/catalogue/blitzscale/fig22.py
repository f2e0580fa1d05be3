"""Figure 22: how much of the network weights use when instances scale over it, beside what KV uses anyway."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.evaluating import (
    BLITZ,
    FULL,
    PROMISES,
    RUNS,
    WORKLOADS,
    Largest,
    Load,
    Served,
    Window,
    Workloads,
    swept,
)
from workbench.catalogue.blitzscale.telling import told, weight_shares
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Match, experiment

EXTRA = "mean extra network share used by scaling"
KINDS = ("kv", "weights")
WITH, WITHOUT = "with scaling", "without scaling"
NAMES = {BLITZ: WITH, FULL: WITHOUT}


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    mean = tables["shares"].filter(system=WITH).group_by("workload", maintain_order=True).agg(pl.col(KINDS).mean())
    parts = [f"{row['workload']} {row['weights']:.2%} beside {row['kv']:.2%} of KV" for row in mean.to_dicts()]
    return f"Of what all network cards could send, weights take {'; '.join(parts)}."


@experiment(
    "blitzscale/fig22",
    title="The network with and without scaling over it",
    question="How much of the network do weights take, and for how long?",
    backends=("compiled",),
    seconds={"compiled": 6.0},
    draw="evaluated.fig22",
    panels=tuple(WORKLOADS),
    say=_say,
    stochastic=True,
    replications=RUNS,
    matches=(
        Match(
            (f"{EXTRA} [acceptance]",), note="mean over the workloads; the paper does not say of which its figure is"
        ),
    ),
)
def fig22(
    context: Context,
    *,
    workloads: Workloads = tuple(WORKLOADS),
    load: Load = 0.5,
    largest_by: Largest = PROMISES,
    window_s: Window = 300.0,
) -> dict[str, pl.DataFrame]:
    """Shares of all network cards together that KV and weights use, by second and on average.

    With scaling over the network: BlitzScale. Without: all instances of a full provisioning, all the time.
    """
    served = swept(context, workloads, tuple(NAMES), load, largest_by, window_s)
    shares = [{"workload": one.workload.name, "system": NAMES[one.system], **weight_shares(one)} for one in served]
    table = pl.DataFrame(shares)
    extra = table.filter(system=WITH)["weights"].to_list()
    known = [
        *((f"{EXTRA}, {name}", "", value, "1") for name, value in zip(workloads, extra, strict=True)),
        (f"{EXTRA} [acceptance]", "", float(np.mean(extra)), "1"),
    ]
    tables = told(served)
    return {
        "shares": table,
        "use": pl.concat([_use(one) for one in served]),
        "totals": tables["totals"],
        "headline": headline(known),
    }


def _use(one: Served) -> pl.DataFrame:
    """Share of all cards that each kind uses in each second."""
    run, network = one.run, one.run.scenario.network
    span_s = float(run.allocation["time_s"].max() - run.allocation["time_s"].min())
    begin = float(run.allocation["time_s"].min())
    edges = np.arange(0.0, max(np.ceil(span_s), 1.0) + 1)
    could = network.egress_bytes_per_s * (run.cluster.accelerators // run.deployment.tp)
    parts = []
    for kind in KINDS:
        table = run.links.filter((pl.col("kind") == kind) & pl.col("link").str.starts_with("egress"))
        start, end = (table[name].to_numpy() - begin for name in ("start_s", "end_s"))
        moved = np.zeros(edges.size)
        for a, b, rate in zip(start, end, table["bytes_per_s"].to_numpy(), strict=True):
            moved += rate * np.clip(edges - a, 0.0, b - a)
        about = {"workload": [one.workload.name] * (edges.size - 1), "system": [NAMES[one.system]] * (edges.size - 1)}
        share = np.diff(moved) / could
        parts.append(pl.DataFrame({**about, "kind": [kind] * share.size, "time_s": edges[:-1], "share": share}))
    return pl.concat(parts)
