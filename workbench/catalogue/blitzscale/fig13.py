"""Figure 13: a serial forwarding chain against a star, and the order of unequal nodes in the chain."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.links import Rate, link_cost
from workbench.catalogue.parameters import Par
from workbench.catalogue.realruns import real_completion
from workbench.catalogue.spec import Agree, experiment
from workbench.errors import UserError
from workbench.transfer.model import Hockney, chain_of_blocks_s, forwarding_chain_s, star_s, uniform_network
from workbench.transfer.policy import Schedule, make_schedule
from workbench.transfer.simulated import simulate

SMALL, LAYERS, STAR = "chain, small units", "chain, whole layers", "star"
MOST_SIMULATED = 256
MOST_REAL = 32
_PAPER = "OSDI'25 paper §5.1"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["completion"].filter(pl.col("target") == parameters["targets"])
    last = {row["plan"]: row["complete_s"] for row in reversed(table.to_dicts())}
    chain = last[SMALL]
    text = f"{parameters['model']} reaches {parameters['targets']} targets in {chain:.3f} s by a chain of small units"
    if STAR not in last:
        return f"{text} and in {last[LAYERS]:.3f} s by whole layers."
    return (
        f"{text}, in {last[LAYERS]:.3f} s by whole layers and in {last[STAR]:.2f} s by a star "
        f"({last[STAR] / chain:.1f} times)."
    )


@experiment(
    "blitzscale/fig13",
    title="A serial chain, a star, and the order of unequal nodes",
    question="How long until the k-th target of a forwarding chain holds the weights, and who should come first?",
    backends=("analytic", "simpy", "torch"),
    seconds={"analytic": 0.02, "simpy": 2.5, "torch": 45},
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
        Par("Forwarding unit", "bytes", low=65536, high=2**31, log=True, free=True, source="artifact: 2 MiB units"),
    ] = 2.0 * 2**20,
    hop_latency_s: Annotated[float, Par("Latency per hop", "s", low=0, high=0.05, step=0.0005, free=True)] = 0.0,
    faster: Annotated[
        float, Par("Second node's link, times the first's", low=1, high=8, step=0.5, status="published", source=_PAPER)
    ] = 2.0,
    rate: Rate = "nominal",
) -> dict[str, pl.DataFrame]:
    """Completion of each target by plan, and of two unequal targets in both orders.

    `units` counts the forwarding units of a run; a simulation cuts the weights into at most 256 units and a real run
    into at most 32, and the formula is evaluated for those too, so that like is compared with like.
    """
    shape = context.model(model)
    cost = link_cost(context, context.cluster(cluster), rate)
    cost = Hockney(alpha_s=cost.alpha_s + hop_latency_s, bytes_per_s=cost.bytes_per_s)
    size = shape.weight_bytes
    if unit_bytes > size:
        raise UserError(f"A unit of {unit_bytes:.4g} bytes is larger than the weights ({size:.4g} bytes); lower it.")
    fine = max(1, round(size / unit_bytes))
    layers = max(1, round(size / shape.layer_bytes))
    rows = []
    for plan, units in _plans(context, fine, layers):
        context.tell(f"{plan}, {units} units")
        seconds = _completion(context, plan, units, targets, size, cost)
        rows += [
            {"plan": plan, "units": units, "target": k, "complete_s": value} for k, value in enumerate(seconds, start=1)
        ]
    order = [row for units in _sizes(context, fine) for row in _orders(context, units, size, cost, faster)]
    table = pl.DataFrame(rows)
    finest = table.filter(pl.col("units") == pl.col("units").max().over("plan"))
    known = _headline(context, shape.layer_bytes, size, cost, order)
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
    plans = [(SMALL, units) for units in _sizes(context, fine)]
    plans += [(LAYERS, units) for units in _sizes(context, layers)]
    # A star among real processes lasts as long as its formula says, so a quick run leaves it out.
    return plans if context.backend == "torch" and context.mode == "quick" else [*plans, (STAR, 1)]


def _completion(context: Context, plan: str, units: int, targets: int, size: int, cost: Hockney) -> list[float]:
    if context.backend == "analytic":
        if plan == STAR:
            return [star_s(k, size, cost.bytes_per_s) + k * cost.alpha_s for k in range(1, targets + 1)]
        return chain_of_blocks_s([cost.travel_s(size / units)] * targets, units).tolist()
    schedule = make_schedule("sequential" if plan == STAR else "chain", targets + 1, units)
    return _run(context, schedule, size, cost, None)


def _orders(context: Context, units: int, size: int, cost: Hockney, faster: float) -> list[dict[str, Any]]:
    rows = []
    pairs = (("slower link", 1.0), ("faster link", faster))
    for order, placed in (("slower link first", pairs), ("faster link first", pairs[::-1])):
        factors = [factor for _, factor in placed]
        block_s = [cost.alpha_s + size / units / (cost.bytes_per_s * factor) for factor in factors]
        if context.backend == "analytic":
            seconds = chain_of_blocks_s(block_s, units).tolist()
        else:
            seconds = _run(context, make_schedule("chain", 3, units), size, cost, factors)
        for (node, _), value in zip(placed, seconds, strict=True):
            rows.append({"order": order, "node": node, "units": units, "complete_s": value})
    return rows


def _run(
    context: Context, schedule: Schedule, size: int, cost: Hockney, factors: Sequence[float] | None
) -> list[float]:
    """Completion of nodes 1, 2, …; `factors` speeds the link into each of them up."""
    links = {} if factors is None else {(node, node + 1): factor for node, factor in enumerate(factors)}
    if context.backend == "torch":
        return real_completion(context, schedule, size, cost, slow=links)[1:].tolist()
    top = max(links.values(), default=1.0) * cost.bytes_per_s
    slow = {pair: cost.bytes_per_s * factor for pair, factor in links.items()}
    network = uniform_network(schedule.nodes, top, cost.alpha_s, slow_links=slow)
    return simulate(schedule, network, size / schedule.blocks).completion["complete_s"].to_list()[1:]


def _headline(
    context: Context, layer_bytes: int, size: int, cost: Hockney, order: list[dict[str, Any]]
) -> list[tuple[str, Any, float, str]]:
    at = {(row["order"], row["node"]): row["complete_s"] for row in reversed(order)}
    first, second = "faster link first", "slower link first"
    faster = at[first, "faster link"] / at[second, "faster link"]
    slower = at[first, "slower link"] / at[second, "slower link"]
    rows: list[tuple[str, Any, float, str]] = [
        (
            "downtime of the node with the faster link, placed first over placed second",
            "its link twice as fast",
            faster,
            "1",
        ),
        (
            "downtime of the node with the slower link, placed second over placed first",
            "other link twice as fast",
            slower,
            "1",
        ),
    ]
    if context.backend != "analytic":
        return rows
    last = "time until the last node holds the weights"
    one, eight = np.full(1, cost.bytes_per_s), np.full(8, cost.bytes_per_s)
    for x, seconds in (
        ("chain, 1 hop", forwarding_chain_s(size, one, 2 * 2**20, cost.alpha_s)[-1]),
        ("chain, 8 hops, 2 MiB units", forwarding_chain_s(size, eight, 2 * 2**20, cost.alpha_s)[-1]),
        ("chain, 8 hops, whole layers (436 MB)", forwarding_chain_s(size, eight, layer_bytes, cost.alpha_s)[-1]),
        ("star, 8 targets", star_s(8, size, cost.bytes_per_s)),
    ):
        rows.append((last, x, float(seconds), "s"))
    return rows
