"""Ring broadcast in the authors' own logs: bandwidth-bound, and faster than the multicast it is compared with."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.links import link_cost
from workbench.catalogue.parameters import Par
from workbench.catalogue.published import published
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.transfer.model import Hockney, chain_of_blocks_s, multicast_s, optimal_blocks, uniform_network
from workbench.transfer.policy import make_schedule
from workbench.transfer.simulated import simulate

RANKS = tuple(range(2, 13))
SLICES = 1024
SIMULATED = (2, 4, 8, 12)
RAW = "raw NCCL broadcast, 13B, x = ranks"
RING, PIPELINE, BEST = "ring broadcast", "binomial pipeline, 16 blocks", "binomial pipeline, best blocks, nominal link"


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["times"].filter(pl.col("ranks") == 4)
    seconds = {row["series"]: row["complete_s"] for row in reversed(table.to_dicts())}
    text = (
        f"On 4 ranks a ring broadcast takes {seconds[RING]:.2f} s and FaaScale's pipeline of 16 blocks, at the rate "
        f"and overhead fitted to its records, {seconds[PIPELINE]:.2f} s"
    )
    if seconds[RING] >= seconds[PIPELINE]:
        return f"{text}."
    return f"{text}: what the pipeline buys is fewer steps per block and early serving, not bytes per second."


@experiment(
    "lambdascale/nccl-honest",
    title="NCCL, told plainly",
    question="Is a broadcast that is bandwidth-optimal for large messages really slower than a binomial pipeline?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.02, "simpy": 2.0},
    draw="curves.nccl_told_plainly",
    say=_say,
    matches=(
        Match(
            (RAW,),
            tolerance=0.05,
            assumptions=(
                Assumption(
                    "every link of that run had its full rate (the slowest link of a ring paces all ranks; 0.62 was "
                    "chosen here to meet the log of the run on 8 ranks, nobody states a cause)",
                    {"slowest_link_share": 0.62},
                ),
            ),
        ),
        Match(
            ("raw NCCL ring bandwidth",),
            assumptions=(Assumption("the protocol costs nothing", {"efficiency": 0.98}),),
        ),
    ),
    agrees=(
        Agree(
            "time to the last rank",
            "times",
            ("series", "ranks"),
            "complete_s",
            {("analytic", "simpy"): (-1e-9, 1e-9)},
        ),
    ),
)
def nccl_honest(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster", profile="cluster", status="published", source="MLSys'26 paper §7.1, Testbed1")
    ] = "lambdascale-testbed1",
    model: Annotated[
        str, Par("Model", profile="model", status="published", source="artifact logs: 13B in one block")
    ] = "llama-2-13b",
    efficiency: Annotated[
        float, Par("NCCL: share of the nominal link rate", low=0.3, high=1.0, step=0.01, source="1: no loss supposed")
    ] = 1.0,
    slowest_link_share: Annotated[
        float,
        Par(
            "Slowest link, share of the others (all ranks)",
            low=0.1,
            high=1.0,
            step=0.01,
            source="1: equal links; 0.62 would meet the log of the run on 8 ranks, and was chosen to",
        ),
    ] = 1.0,
    step_overhead_s: Annotated[
        float,
        Par(
            "Best pipeline: overhead per step",
            "s",
            low=1e-6,
            high=1e-2,
            log=True,
            free=True,
            status="inferred",
            source="NCCL send/receive of 2 KiB between H100 hosts (microsoft/vidur); the recorded pipeline pays 6.3 ms",
        ),
    ] = 17e-6,
) -> dict[str, pl.DataFrame]:
    """Seconds of a ring broadcast and of the binomial pipeline against the number of ranks.

    Every block crosses every link of a ring but one, so a slow link sets the pace of all ranks, however many they are.
    """
    profile = context.cluster(cluster)
    size = context.model(model).weight_bytes
    nominal = link_cost(context, profile, "nominal")
    recorded = link_cost(context, profile, "achievable")
    ring = Hockney(bytes_per_s=nominal.bytes_per_s * efficiency)
    fast = Hockney(alpha_s=step_overhead_s, bytes_per_s=nominal.bytes_per_s)
    rows = []
    for ranks in RANKS if context.backend == "analytic" else SIMULATED:
        context.tell(f"{ranks} ranks")
        seconds = _ring_s(context, ranks, size, ring, slowest_link_share)
        rows.append({"series": RING, "ranks": ranks, "complete_s": seconds})
        seconds = _pipeline_s(context, ranks, 16, size, recorded)
        rows.append({"series": PIPELINE, "ranks": ranks, "complete_s": seconds})
        if context.backend == "analytic":
            best = optimal_blocks("binomial_pipeline", ranks, size, fast)
            rows.append({"series": BEST, "ranks": ranks, "complete_s": best.seconds})
    table = pl.DataFrame(rows)
    known = [*_headline(table, size), *curve_rows(table, "series", "ranks", "complete_s", "s")]
    return {"times": table, "recorded": _recorded(), "headline": headline(known)}


def _ring_s(context: Context, ranks: int, size: int, cost: Hockney, slow: float) -> float:
    if context.backend == "analytic":
        slice_s = cost.travel_s(size / SLICES)
        return float(chain_of_blocks_s([slice_s / slow, *[slice_s] * (ranks - 2)], SLICES)[-1])
    schedule = make_schedule("ring_broadcast", ranks, 1, slices=SLICES)
    links = {(0, 1): cost.bytes_per_s * slow} if slow < 1 else None
    network = uniform_network(ranks, cost.bytes_per_s, slow_links=links)
    return simulate(schedule, network, size / schedule.blocks).finish_s


def _pipeline_s(context: Context, ranks: int, blocks: int, size: int, cost: Hockney) -> float:
    if context.backend == "analytic":
        return multicast_s("binomial_pipeline", ranks, blocks, size, cost)
    network = uniform_network(ranks, cost.bytes_per_s, cost.alpha_s)
    return simulate(make_schedule("binomial_pipeline", ranks, blocks), network, size / blocks).finish_s


def _headline(table: pl.DataFrame, size: int) -> list[tuple[str, Any, float, str]]:
    ring = {row["ranks"]: row["complete_s"] for row in table.filter(pl.col("series") == RING).to_dicts()}
    rows: list[tuple[str, Any, float, str]] = [(RAW, ranks, ring[ranks], "s") for ranks in (2, 4, 8, 12)]
    rows.append(("raw NCCL broadcast, 13B, NCCL's own prediction", "ring, simple protocol", ring[4], "s"))
    rows.append(("raw NCCL ring bandwidth", "2, 4 and 12 ranks", size / ring[4], "bytes/s"))
    return rows


def _recorded() -> pl.DataFrame:
    """Recorded times of 13B on 8 nodes: FaaScale's, and NCCL's as FaaScale was compared with it."""
    table = published("lambdascale/fig7").filter((pl.col("x") == "8") & pl.col("series").str.ends_with("13B"))
    return table.select("series", pl.col("value").alias("complete_s"), "source")
