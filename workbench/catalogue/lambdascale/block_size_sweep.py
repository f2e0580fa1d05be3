"""Real copies by block size: α and B of this machine's path, and into how many blocks they would cut a model."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.lambdascale.message_sizes import (
    HELD_OUT,
    READINGS,
    SIZES,
    SWEPT,
    Bandwidth,
    OverheadUs,
    by_formula,
    elbow,
    measured,
)
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.results import Verdict
from workbench.transfer.model import Hockney, optimal_blocks

BEST = "best number of blocks at this overhead and bandwidth, x = nodes"
NODES = (4, 8, 16, 64)
VISIBLE = 2.0
"""How many times longer a gigabyte must take in the smallest messages than in the largest for the elbow to be seen."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    path = f" ({tables['path']['path'][-1]})" if "path" in tables else ""
    best = tables["best"].filter(pl.col("backend") == tables["best"]["backend"][-1])
    said = ", ".join(f"{blocks:,} for {nodes}" for nodes, blocks in best.select("nodes", "blocks").iter_rows())
    return f"{elbow(tables)}{path}; by binomial pipeline {parameters['message_mb']:,.0f} MB go in {said} nodes."


def _judge(draft: Draft) -> list[Verdict]:
    real = draft.tables["sweep"].filter(pl.col("backend") != "analytic").sort("message_bytes")
    if not len(real):
        return []
    ratio = real["gigabyte_s"][0] / real["gigabyte_s"].tail(3).mean()
    seen = ratio >= VISIBLE
    return [
        Verdict(
            claim="the elbow of the time against the block size is visible",
            published="visible",
            ours=f"1 GB takes {ratio:.1f} times as long in messages of {SIZES[0] // 1024} KiB as in the largest",
            strength="ordering",
            verdict="reproduced" if seen else "differs",
            reason=f"at least {VISIBLE:g} times is called visible"
            + ("" if seen else ". Assumed here: overhead and bytes are all that a message costs"),
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "lambdascale/block-size-sweep",
    title="Overhead and bandwidth of this machine's path",
    question="How long does one message of each size take here, and how large should blocks then be?",
    backends=("analytic", "torch"),
    seconds={"analytic": 0.01, "torch": 8},
    draw="packed.block_sizes",
    say=_say,
    judges=(_judge,),
    agrees=(HELD_OUT,),
)
def block_size_sweep(
    context: Context,
    *,
    message_mb: Annotated[float, Par("Model", "MB", low=10, high=10_000, log=True, free=True)] = 1000.0,
    overhead_us: OverheadUs = 150.0,
    gb_per_s: Bandwidth = 2.2,
) -> dict[str, pl.DataFrame]:
    """Seconds for 1 GB in messages of 16 KiB to 64 MiB, one at a time, and the best number of blocks of a multicast.

    The real run copies from pinned memory to the GPU where torch finds one, else between two processes. α and B are
    fitted to every second size; the other sizes are laid beside that fit.
    """
    tables = _real(context) if context.backend == "torch" else by_formula(overhead_us, gb_per_s)
    cost = Hockney(**tables["fit"].row(0, named=True))
    counts = [optimal_blocks("binomial_pipeline", nodes, message_mb * 1e6, cost).integer for nodes in NODES]
    named = tables["sweep"].with_columns(series=pl.lit(SWEPT))
    known = curve_rows(named, "series", "message_bytes", "gigabyte_s", "s")
    known += [(BEST, nodes, count, "1") for nodes, count in zip(NODES, counts, strict=True)]
    best = pl.DataFrame({"nodes": NODES, "blocks": counts})
    return {**tables, "best": best, "headline": headline(known)}


def _real(context: Context) -> dict[str, pl.DataFrame]:
    from workbench.scaling.real.packing import message_times

    context.tell("real run: messages of all sizes")
    swept = message_times(SIZES, READINGS[context.mode], gpu=True, stop=context.give_way)
    return {**measured(context, swept.seconds), "path": pl.DataFrame({"path": [swept.path]})}
