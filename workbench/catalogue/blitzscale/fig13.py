"""Figure 13: a serial forwarding chain against a star and a tree, and the order of unequal nodes in the chain."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.links import Rate, link_cost
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.realruns import real_completion
from workbench.catalogue.spec import Agree, experiment
from workbench.errors import UserError
from workbench.transfer.model import (
    Hockney,
    chain_of_blocks_s,
    completion,
    forwarding_chain_s,
    star_s,
    uniform_network,
)
from workbench.transfer.policy import Schedule, by_bandwidth, make_schedule
from workbench.transfer.simulated import simulate

SMALL, LAYERS = "chain, small units", "chain, whole layers"
TREE, PIPELINE, STAR = "binary tree, small units", "binomial pipeline, small units", "star"
SCHEDULE = {SMALL: "chain", LAYERS: "chain", TREE: "binary_tree", PIPELINE: "binomial_pipeline", STAR: "sequential"}
GIVEN, FASTEST, SLOWEST = "in the given order", "fastest link first", "slowest link first"
LAST = "time until the last node holds the weights"
MOST_SIMULATED = 256
MOST_REAL = 32
PAIR = (1.0, 2.0)
_PAPER = "OSDI'25 paper §5.1"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["completion"].filter(pl.col("target") == parameters["targets"])
    last = {row["plan"]: row["complete_s"] for row in reversed(table.to_dicts())}
    chain = last[SMALL]
    text = (
        f"{name_of(parameters['model'])} reaches {parameters['targets']} targets in {chain:.3f} s by a chain of small"
    )
    text += f" units and in {last[LAYERS]:.3f} s by whole layers"
    return f"{text}; a star takes {last[STAR] / chain:.1f} times as long." if STAR in last else f"{text}."


@experiment(
    "blitzscale/fig13",
    title="Chain, star or tree, and the order of unequal nodes",
    question="How long until the k-th target of a forwarding chain holds the weights, and who should come first?",
    backends=("analytic", "simpy", "torch"),
    seconds={"analytic": 0.02, "simpy": 3.5, "torch": 60},
    draw="chains.chain_and_star",
    panels=("targets", "order"),
    say=_say,
    agrees=(
        Agree(
            "completion of each target",
            "completion",
            ("plan", "units", "target"),
            "complete_s",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.01, 0.10)},
        ),
        Agree(
            "completion by order of unequal nodes",
            "order",
            ("order", "node", "units"),
            "complete_s",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.01, 0.10)},
        ),
    ),
)
def fig13(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster", profile="cluster", status="published", source=f"{_PAPER}; Table 1, cluster A")
    ] = "blitzscale-a",
    model: Annotated[str, Par("Model", profile="model", status="published", source="OSDI'25 paper §6")] = "llama-3-8b",
    targets: Annotated[int, Par("Targets", low=1, high=32, free=True, source="8 in the comparison")] = 8,
    unit_bytes: Annotated[
        float,
        Par(
            "Forwarding unit",
            "bytes",
            low=2.0**16,
            high=2.0**31,
            log=True,
            status="published",
            source="artifact: 2 MiB",
        ),
    ] = 2.0**21,
    hop_latency_s: Annotated[
        float, Par("Latency per hop", "s", low=0, high=0.05, step=0.0005, source="0: the paper's model has none")
    ] = 0.0,
    link_factors: Annotated[
        tuple[float, ...],
        Par(
            "Links of the unequal nodes, times B", low=0.05, high=20, status="published", source=f"{_PAPER}: one twice"
        ),
    ] = PAIR,
    rate: Rate = "nominal",
) -> dict[str, pl.DataFrame]:
    """Completion of each target by plan, and of unequal targets of a chain in three orders.

    `units` counts the forwarding units of a run; a simulation cuts the weights into at most 256 units and a real run
    into at most 32, and the formula is evaluated for those too, so that like is compared with like.
    """
    shape = context.model(model)
    cost = link_cost(context, context.cluster(cluster), rate, targets + 1)
    cost = Hockney(alpha_s=cost.alpha_s + hop_latency_s, bytes_per_s=cost.bytes_per_s)
    size = shape.weight_bytes
    if unit_bytes > size:
        raise UserError(f"A unit of {unit_bytes:.4g} bytes is larger than the weights ({size:.4g} bytes); lower it.")
    if len(link_factors) > MOST_REAL:
        raise UserError(f"At most {MOST_REAL} unequal nodes can be compared, got {len(link_factors)}; name fewer.")
    fine = max(1, round(size / unit_bytes))
    layers = max(1, round(size / shape.layer_bytes))
    rows = []
    for plan, units in _plans(context, fine, layers):
        context.tell(f"{plan}, {units} units")
        seconds = _completion(context, plan, units, targets, size, cost)
        rows += [
            {"plan": plan, "units": units, "target": k, "complete_s": value} for k, value in enumerate(seconds, start=1)
        ]
    order = [row for units in _sizes(context, fine) for row in _orders(context, units, size, cost, link_factors)]
    table = pl.DataFrame(rows)
    finest = table.filter(pl.col("units") == pl.col("units").max().over("plan"))
    known = _headline(context, shape.layer_bytes, size, cost, order, link_factors)
    known += curve_rows(finest, "plan", "target", "complete_s", "s")
    return {"completion": table, "order": pl.DataFrame(order), "headline": headline(known)}


def _sizes(context: Context, units: int) -> list[int]:
    """Numbers of units this backend answers for; the formula also for those that the others are limited to."""
    if context.backend == "torch":
        return [min(units, MOST_REAL)]
    if context.backend == "simpy":
        return [min(units, MOST_SIMULATED)]
    return list(dict.fromkeys([units, min(units, MOST_SIMULATED), min(units, MOST_REAL)]))


def _plans(context: Context, fine: int, layers: int) -> list[tuple[str, int]]:
    plans = [(plan, units) for plan in (SMALL, TREE, PIPELINE) for units in _sizes(context, fine)]
    plans += [(LAYERS, units) for units in _sizes(context, layers)]
    if context.backend == "torch" and context.mode == "quick":
        # A star among real processes lasts as long as its formula says, so a quick run leaves it and the tree out.
        return [(plan, units) for plan, units in plans if plan != TREE]
    return [*plans, (STAR, 1)]


def _completion(context: Context, plan: str, units: int, targets: int, size: int, cost: Hockney) -> list[float]:
    """Seconds of targets 1, 2, …, in the order in which they are complete."""
    if context.backend == "analytic" and plan == STAR:
        return [star_s(k, size, cost.bytes_per_s) + k * cost.alpha_s for k in range(1, targets + 1)]
    if context.backend == "analytic":
        return sorted(completion(SCHEDULE[plan], targets + 1, units, size, cost)["complete_s"].to_list()[1:])
    return sorted(_run(context, make_schedule(SCHEDULE[plan], targets + 1, units), size, cost, None))


def _orders(
    context: Context, units: int, size: int, cost: Hockney, link_factors: Sequence[float]
) -> list[dict[str, Any]]:
    """Completion of the unequal targets in each order; nodes are named by their place in the given order and factor."""
    fastest = by_bandwidth(list(link_factors), sources=0)
    rows = []
    for label, places in ((GIVEN, range(len(link_factors))), (FASTEST, fastest), (SLOWEST, fastest[::-1])):
        factors = [link_factors[place] for place in places]
        if context.backend == "analytic":
            block_s = [cost.alpha_s + size / units / (cost.bytes_per_s * factor) for factor in factors]
            seconds = chain_of_blocks_s(block_s, units).tolist()
        else:
            seconds = _run(context, make_schedule("chain", len(factors) + 1, units), size, cost, factors)
        for place, factor, value in zip(places, factors, seconds, strict=True):
            node = f"node {place + 1} (link {factor:g} times B)"
            rows.append({"order": label, "node": node, "units": units, "complete_s": value})
    return rows


def _run(
    context: Context, schedule: Schedule, size: int, cost: Hockney, factors: Sequence[float] | None
) -> list[float]:
    """Completion of nodes 1, 2, …; `factors` speeds the link into each of them up."""
    links = {} if factors is None else {(node, node + 1): factor for node, factor in enumerate(factors)}
    if context.backend == "torch":
        return real_completion(context, schedule, size, cost, slow=links)[1:].tolist()
    top = max(1.0, *links.values()) * cost.bytes_per_s if links else cost.bytes_per_s
    slow = {pair: cost.bytes_per_s * factor for pair, factor in links.items()}
    network = uniform_network(schedule.nodes, top, cost.alpha_s, slow_links=slow)
    return simulate(schedule, network, size / schedule.blocks).completion["complete_s"].to_list()[1:]


def _headline(
    context: Context,
    layer_bytes: int,
    size: int,
    cost: Hockney,
    order: list[dict[str, Any]],
    link_factors: Sequence[float],
) -> list[tuple[str, Any, float, str]]:
    rows: list[tuple[str, Any, float, str]] = []
    if tuple(link_factors) == PAIR:
        at = {(row["order"], row["node"]): row["complete_s"] for row in reversed(order)}
        slower, faster = "node 1 (link 1 times B)", "node 2 (link 2 times B)"
        label = "downtime of the node with the faster link, placed first over placed second"
        rows.append((label, "its link twice as fast", at[FASTEST, faster] / at[SLOWEST, faster], "1"))
        label = "downtime of the node with the slower link, placed second over placed first"
        rows.append((label, "other link twice as fast", at[FASTEST, slower] / at[SLOWEST, slower], "1"))
    if context.backend != "analytic":
        return rows
    one, eight = np.full(1, cost.bytes_per_s), np.full(8, cost.bytes_per_s)
    for x, seconds in (
        ("chain, 1 hop", forwarding_chain_s(size, one, 2**21, cost.alpha_s)[-1]),
        ("chain, 8 hops, 2 MiB units", forwarding_chain_s(size, eight, 2**21, cost.alpha_s)[-1]),
        ("chain, 8 hops, whole layers (436 MB)", forwarding_chain_s(size, eight, layer_bytes, cost.alpha_s)[-1]),
        ("star, 8 targets", star_s(8, size, cost.bytes_per_s)),
    ):
        rows.append((LAST, x, float(seconds), "s"))
    return rows
