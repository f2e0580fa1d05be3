"""Figure 20: what each ingredient adds: ServerlessLLM, then weights over the network, chains, help while loading."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.evaluating import (
    ALWAYS,
    ANYBODY,
    BLITZ,
    BURST,
    CARDS,
    CODE,
    CONV,
    DECODE_FIRST,
    HOST,
    MULTICAST,
    NETWORK,
    PROMISED,
    PROMISES,
    RUNS,
    SLLM,
    WORKLOADS,
    Helps,
    Inside,
    Largest,
    Load,
    Senders,
    Window,
    Workloads,
    swept,
)
from workbench.catalogue.blitzscale.telling import TBT, TTFT, told
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Assumption, Match, Ordering, experiment

STEPS = (SLLM, NETWORK, MULTICAST, BLITZ)
LABELS = {NETWORK: "+Network", MULTICAST: "+Multicast", BLITZ: "+ZigZag"}
STEP, TAIL = "TBT P95 reduction of the step", "tail latency reduction by ZigZag"

_NOTE = "a reading note's number that was not checked against the figure; it does not say from which step it counts"
_MEAN = Assumption("the reduction is the mean over three workloads", {"workloads": (BURST.name,)})
_INSIDE = Assumption(
    "inside a host of cluster B, which has no NVLink, instances take weights from each other, so that few starts need "
    "the network",
    {"inside": CARDS},
)
_HELPS = Assumption(
    "a tail helps only where a prompt that waited for all of the load would break the promise", {"helps": ALWAYS}
)
_SENDERS = Assumption(
    "instances that compute prompts send no weights while one decodes, so that chains have fewer sources than loads by "
    "themselves, at first a single one",
    {"senders": ANYBODY},
)


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["totals"].group_by("workload", "system", maintain_order=True).agg(pl.col(f"{TTFT} P95").mean())
    parts = [
        f"{workload} {', '.join(f'{value:.2g}' for value in part[f'{TTFT} P95'])} s"
        for (workload,), part in table.group_by("workload", maintain_order=True)
    ]
    return f"P95 of TTFT by ServerlessLLM, with the network, with chains, and live: {'; '.join(parts)}."


def _order(name: str, better: str, worse: str, claim: str) -> Ordering:
    return Ordering(claim, (f"{TTFT}, {better}", f"{TTFT}, {worse}"), x=name, assumptions=(_INSIDE, _SENDERS))


@experiment(
    "blitzscale/fig20",
    title="What each ingredient adds",
    question="How much of the gain is the network's, how much the chains', how much comes from helping while loading?",
    backends=("compiled",),
    seconds={"compiled": 6.0},
    draw="evaluated.fig20",
    panels=("ttft", "tbt"),
    say=_say,
    stochastic=True,
    replications=RUNS,
    matches=(
        Match((STEP,), incomparable={f"AzureCode, {label}": _NOTE for label in LABELS.values()}),
        Match((TAIL,), assumptions=(_MEAN, _INSIDE, _HELPS)),
    ),
    orderings=(
        *(_order(one.name, NETWORK, SLLM, f"the network shortens TTFT of {one.name}") for one in (CODE, CONV)),
        *(_order(one.name, MULTICAST, NETWORK, f"chains shorten TTFT of {one.name}") for one in (CODE, CONV)),
        *(
            _order(one.name, BLITZ, MULTICAST, f"help while loading shortens TTFT of {one.name}")
            for one in (CODE, CONV)
        ),
    ),
)
def fig20(
    context: Context,
    *,
    workloads: Workloads = tuple(WORKLOADS),
    load: Load = 0.5,
    largest_by: Largest = PROMISES,
    window_s: Window = 300.0,
    senders: Senders = DECODE_FIRST,
    inside: Inside = HOST,
    helps: Helps = PROMISED,
) -> dict[str, pl.DataFrame]:
    """P95 of TTFT and TBT after each step, on the same windows.

    One policy decides for all steps; they differ in where weights come from, and in what a loading instance does. With
    +Network each new instance gets its weights from a source by itself, and those of one source share its card.
    """
    tables = told(
        swept(context, workloads, STEPS, load, largest_by, window_s, senders=senders, inside=inside, helps=helps)
    )
    known, tails = [], []
    for name in workloads:
        rows = {row["system"]: row for row in tables["totals"].filter(workload=name).to_dicts()}
        for what in (TTFT, TBT):
            known += [(f"{what}, {system}", name, rows[system][f"{what} P95"], "s") for system in STEPS]
        for before, after in itertools.pairwise(STEPS):
            value = 1 - rows[after][f"{TBT} P95"] / rows[before][f"{TBT} P95"]
            known.append((STEP, f"{name.split(' ')[0]}, {LABELS[after]}", value, "1"))
        tails.append(1 - rows[BLITZ][f"{TTFT} P95"] / rows[MULTICAST][f"{TTFT} P95"])
    known.append((TAIL, "", float(np.mean(tails)), "1"))
    return tables | {"headline": headline(known)}
