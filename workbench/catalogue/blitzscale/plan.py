"""Figures 2, 6, 10 and 11: a plan's chains on the topology, by three planners."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.blitzscale.plan_cluster import Shape, laid_out
from workbench.catalogue.blitzscale.planners import (
    ARTIFACT,
    BEST,
    GREEDY,
    PLANNERS,
    edges_of,
    places_of,
    planned,
    plans_of,
    sources_of,
    uplinks_of,
)
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.links import Rate, link_cost
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.spec import experiment
from workbench.errors import UserError

_NOTES = "notes on BlitzScale, §2.2: the paper leaves it open"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    known = {row["planner"]: row for row in tables["plans"].to_dicts()}
    planner = parameters["planner"]
    if planner not in known:
        return "No accelerator is spare: all serve, or share a scale-up domain with one that does."
    row = known[planner]
    what = "lane" if planner == ARTIFACT else "chain"
    text = f"{planner.capitalize()}: {name_of(parameters['model'])} goes by {_count(row['chains'], what)} to"
    text += f" {_count(row['reached'], 'accelerator')} in {row['last_s']:.3g} s"
    if row["rounds"] > 1:
        text += f" and {_count(row['rounds'], 'round')}"
    text += f"; {row['uplink_bytes'] / 1e9:.4g} GB go up to the spine."
    out = tables["sources"].filter(pl.col("pruned"))
    reasons = [f"{', '.join(part['name'])} ({why})" for (why,), part in out.group_by("why", maintain_order=True)]
    return text + (f" Left out: {'; '.join(reasons)}." if reasons else " No source is left out.")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


@experiment(
    "blitzscale/plan",
    title="A plan's chains on the topology",
    question="Who sends the weights to whom, over which switches, and which copies are left out?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="plan.topology",
    panels=("topology", "time", "uplinks"),
    say=_say,
)
def plan(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster whose cards are taken", profile="cluster", status="published", source="Table 1, cluster A")
    ] = "blitzscale-a",
    model: Annotated[str, Par("Model", profile="model", status="published", source="OSDI'25 paper §6")] = "llama-3-8b",
    planner: Annotated[str, Par("Planner", choices=(GREEDY, ARTIFACT, BEST), free=True)] = GREEDY,
    targets: Annotated[int, Par("Accelerators wanted", low=1, high=128, free=True, source="chosen")] = 16,
    chains: Annotated[
        int,
        Par("Greedy chains, 0 for one a source", low=0, high=9, free=True, source=_NOTES),
    ] = 0,
    prune: Annotated[
        bool, Par("Leave out sources whose way out carries KV", free=True, source="OSDI'25 paper §5.1, Fig 11 line 1")
    ] = True,
    hosts: Annotated[int, Par("Hosts", low=1, high=16, status="published", source="Table 1: 4 in cluster A")] = 4,
    accelerators: Annotated[int, Par("GPUs of a host", low=1, high=8, status="published", source="Table 1: 8")] = 8,
    hosts_per_leaf: Annotated[int, Par("Hosts below a leaf switch", low=1, high=16, free=True, source="chosen")] = 2,
    domain: Annotated[
        int,
        Par(
            "GPUs of an NVLink group, at most those of a host",
            low=1,
            high=8,
            source="artifact: 4 in the configuration of 24B",
        ),
    ] = 4,
    prefill: Annotated[int, Par("Prefill instances with the weights", low=0, high=4, free=True, source="chosen")] = 2,
    decode: Annotated[int, Par("Decode instances with the weights", low=0, high=4, free=True, source="chosen")] = 2,
    host_copy: Annotated[bool, Par("A copy in the last host's memory", free=True, source="chosen")] = True,
    slow_hosts: Annotated[int, Par("Last hosts with cards half as fast", low=0, high=16, source="0: all alike")] = 0,
    kv_share: Annotated[
        float,
        Par(
            "KV's share of a prefill card",
            low=0.0,
            high=0.9,
            step=0.01,
            free=True,
            source="a third: what the published 1.5 times of Fig 8 needs",
        ),
    ] = 0.33,
    between_leaves: Annotated[
        float,
        Par("Rate between leaf switches over that below one", low=0.1, high=1.0, step=0.05, free=True, source="chosen"),
    ] = 0.5,
    rate: Rate = "nominal",
) -> dict[str, pl.DataFrame]:
    """Chains from copies to spare accelerators, by the greedy planner, the artifact's and an exhaustive search.

    An instance is one accelerator here; where more accelerators or chains are wanted than there can be, all are taken.
    Units are small, hops have no latency, and NVLink inside a group costs nothing, in all three; the exhaustive search
    goes through all chains of the nodes that the greedy planner takes, so the artifact's stripes, which use the cards
    of several sources at once, may be faster than its best.
    """
    size = float(context.model(model).weight_bytes)
    card = link_cost(context, context.cluster(cluster), rate, hosts).bytes_per_s
    shape = Shape(hosts, accelerators, hosts_per_leaf, min(domain, accelerators), slow_hosts, card)
    holders, spares, rows = laid_out(shape, prefill, decode, host_copy, kv_share)
    if not holders:
        raise UserError("Nobody holds the weights; add an instance or the copy in memory.")
    wanted = min(targets, len(spares))
    asked = planned(planner, holders, spares, wanted, chains, prune, size, between_leaves, asked=True)
    others = [
        planned(name, holders, spares, wanted, chains, prune, size, between_leaves)
        for name in PLANNERS
        if name != planner
    ]
    found = [asked, *(one for one in others if one is not None)] if wanted else []
    uplinks, sources = uplinks_of(found, shape), sources_of(holders, asked, prune)
    plans = plans_of(found, uplinks)
    known = [
        (series, row["planner"], row[column], unit)
        for row in plans.to_dicts()
        for series, column, unit in (
            ("time until the last accelerator holds the weights", "last_s", "s"),
            ("mean time until an accelerator holds the weights", "mean_s", "s"),
            ("bytes that go up to the spine", "uplink_bytes", "bytes"),
        )
    ]
    known.append(("sources left out", planner, int(sources["pruned"].sum()), "1"))
    return {
        "places": places_of(rows, asked),
        "edges": edges_of(asked),
        "sources": sources,
        "uplinks": uplinks,
        "plans": plans,
        "headline": headline(known),
    }
