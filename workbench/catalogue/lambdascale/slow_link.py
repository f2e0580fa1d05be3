"""One slow directed link: what a binomial pipeline and a chain keep of their throughput."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.realruns import real_seconds
from workbench.catalogue.spec import Agree, experiment
from workbench.transfer.model import Hockney, slow_link_share, slow_link_share_of_chain, uniform_network
from workbench.transfer.policy import SCHEDULES, make_schedule
from workbench.transfer.simulated import simulate

NAMES = ("binomial_pipeline", "chain")
MOST_REAL = 32
SHARES = (0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["share"]
    table = table.filter(
        (pl.col("backend") == table["backend"][0]) & (pl.col("slow_share") == parameters["slow_share"])
    )
    table = table.filter(pl.col("blocks") == pl.col("blocks").max())
    kept = dict(zip(table["schedule"], table["kept"], strict=True))
    return (
        f"A link at {parameters['slow_share']:.0%} of its rate leaves the binomial pipeline "
        f"{kept['binomial_pipeline']:.0%} of its throughput on {table['nodes'][0]} nodes, and a chain "
        f"{kept['chain']:.0%}."
    )


@experiment(
    "lambdascale/slow-link",
    title="One slow link",
    question="What is left of the throughput when one directed link is slower than all others?",
    backends=("analytic", "simpy", "torch"),
    seconds={"analytic": 0.02, "simpy": 3.0, "torch": 12},
    draw="curves.slow_link",
    say=_say,
    agrees=(
        Agree(
            "throughput kept (the pipeline's formula is for endless blocks)",
            "share",
            ("schedule", "slow_share", "blocks"),
            "kept",
            {("analytic", "simpy"): (-0.03, 0.03), ("analytic", "torch"): (-0.05, 0.10)},
        ),
    ),
)
def slow_link(
    context: Context,
    *,
    nodes: Annotated[
        int, Par("Nodes (a power of two)", low=2, high=64, free=True, source="8, 16, 64 in the check")
    ] = 8,
    blocks: Annotated[int, Par("Blocks", low=16, high=512, step=16, free=True, source="256 in the check")] = 256,
    slow_share: Annotated[
        float, Par("Slow link's bandwidth, share of the others'", low=0.1, high=1.0, step=0.05, free=True)
    ] = 0.5,
) -> dict[str, pl.DataFrame]:
    """Throughput with the slow link over throughput without it, against how slow the link is.

    The slow link is the one from the source to node 1, which both schedules use; bandwidths and sizes cancel.
    """
    size = 1 << (nodes.bit_length() - 1)
    if size != nodes:
        context.cite(
            "nodes used", size, "1", "chosen", "the formula holds for powers of two; the next lower one is used"
        )
    shares = sorted({*(_few(context) or SHARES), slow_share})
    # The formula answers for the blocks of a real run too, so that like is compared with like.
    few = min(blocks, MOST_REAL)
    counts = {"analytic": dict.fromkeys((blocks, few)), "simpy": (blocks,), "torch": (few,)}[context.backend]
    rows = [
        {"schedule": name, "nodes": size, "blocks": count, "slow_share": share}
        | {"kept": _kept(context, name, size, count, share)}
        for name in NAMES
        for count in counts
        for share in shares
    ]
    table = pl.DataFrame(rows)
    labelled = table.with_columns(pl.col("schedule").replace_strict({name: SCHEDULES[name].label for name in NAMES}))
    most = labelled.filter(pl.col("blocks") == pl.col("blocks").max())
    known = [*_known(context), *curve_rows(most, "schedule", "slow_share", "kept", "1")]
    return {"share": table, "headline": headline(known)}


def _few(context: Context) -> tuple[float, ...]:
    if context.backend == "torch":
        return (0.5,)
    return (0.25, 0.5, 0.75, 1.0) if context.backend == "simpy" else ()


def _kept(context: Context, name: str, nodes: int, blocks: int, share: float) -> float:
    if context.backend == "analytic":
        if name == "chain":
            return float(slow_link_share_of_chain(nodes, blocks, share))
        return float(slow_link_share(nodes, share))
    context.tell(f"{name}, link at {share:.0%}")
    return _run(context, name, nodes, blocks, 1.0) / _run(context, name, nodes, blocks, share)


def _run(context: Context, name: str, nodes: int, blocks: int, share: float) -> float:
    if context.backend == "torch":
        schedule = make_schedule(name, nodes, blocks)
        rate = Hockney(bytes_per_s=schedule.blocks / 0.8)
        return real_seconds(context, schedule, schedule.blocks, rate, slow={(0, 1): share})
    slow = {(0, 1): share} if share < 1 else None
    return simulate(make_schedule(name, nodes, blocks), uniform_network(nodes, 1.0, slow_links=slow), 1.0).finish_s


def _known(context: Context) -> list[tuple[str, Any, float, str]]:
    if context.backend == "torch":
        return []
    rows: list[tuple[str, Any, float, str]] = []
    for nodes in (8, 16, 64):
        kept = _kept(context, "binomial_pipeline", nodes, 256, 0.5)
        kind = "formula" if context.backend == "analytic" else "simulated"
        rows.append((f"throughput kept by the binomial pipeline, {kind}, x = nodes", nodes, kept, "1"))
    if context.backend == "simpy":
        kept = [_kept(context, "chain", nodes, 256, 0.5) for nodes in (8, 16, 64)]
        rows.append(("throughput kept by the chain, simulated", "8 to 64 nodes", sum(kept) / len(kept), "1"))
    return rows
