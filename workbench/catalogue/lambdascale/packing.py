"""Ablation: packed blocks, memory made ahead and direct transfer, each left out in turn, between real processes."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
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
from workbench.results import Verdict, read_against
from workbench.transfer.model import Hockney

MIB = 1 << 20
ALL_ON = "packed blocks, memory made ahead, direct"
PIECES, ON_ARRIVAL, BUFFERED = "pieces instead of packed blocks", "memory made on arrival", "by way of a buffer"
EVERY_OFF = "all three off"
REPEATS = {"quick": 9, "full": 21}
SLOWER = "time over that with all on, x = what is left out"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    text = elbow(tables)
    last = tables["ablation"].filter(pl.col("backend") == tables["ablation"]["backend"][-1])
    off = last.group_by("way", maintain_order=True).agg(pl.col("slower").median())
    said = ", ".join(f"{way} {slower:.2f}" for way, slower in off.iter_rows() if way != ALL_ON)
    return f"{text}; times as long as with all three on: {said}."


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["ablation"].filter(pl.col("backend") != "analytic")
    if table.is_empty():
        return []
    found = []
    for way in (PIECES, ON_ARRIVAL, BUFFERED):
        slower = np.sort(table.filter(pl.col("way") == way)["slower"].to_numpy())
        median, interval = float(np.median(slower)), _interval(slower)
        reading = read_against(median, interval, 1.0, np.inf)
        found.append(
            Verdict(
                claim=f"{way}: slower than with all three on",
                published="slower",
                ours=median,
                interval=interval,
                tolerance=(1.0, np.inf),
                strength="ordering",
                verdict=reading,
                reason=f"quickest block of each of {len(slower)} turns, their median and where it lies (95 %)"
                + (". Assumed here: both ways meet the same load of the machine" if reading == "differs" else ""),
                mode=draft.mode,
                seeds=draft.seeds,
            )
        )
    return found


def _interval(ordered: np.ndarray) -> tuple[float, float]:
    """Two readings between which the median lies with at least 95 % confidence, whatever the distribution."""
    turns = len(ordered)
    below = np.cumsum([math.comb(turns, count) for count in range(turns)]) / 2**turns
    outside = max(1, int((below <= 0.025).sum()))  # so many readings may be left out at either end
    return float(ordered[outside - 1]), float(ordered[-outside])


def _block_s(cost: Hockney, block_bytes: int, piece_bytes: int) -> float:
    """Seconds for a block that comes in messages of at most so many bytes, one at a time."""
    whole, rest = divmod(block_bytes, piece_bytes)
    return whole * cost.travel_s(piece_bytes) + (cost.travel_s(rest) if rest else 0.0)


@experiment(
    "lambdascale/packing",
    title="Packing, memory made ahead, direct transfer (ablation)",
    question="How much slower does a model arrive in pieces, into memory made on arrival, or by way of a buffer?",
    backends=("analytic", "torch"),
    seconds={"analytic": 0.01, "torch": 15},
    draw="packed.packing",
    say=_say,
    judges=(_judge,),
    agrees=(HELD_OUT,),
)
def packing(
    context: Context,
    *,
    block_mib: Annotated[
        int, Par("Block", "MiB", low=2, high=64, free=True, source="16; the artifact's blocks have 1.6 GB and more")
    ] = 16,
    piece_mib: Annotated[
        int, Par("Piece", "MiB", low=1, high=16, free=True, status="published", source="artifact store_manager.py")
    ] = 1,
    blocks: Annotated[int, Par("Blocks", low=1, high=16, free=True)] = 4,
    overhead_us: OverheadUs = 150.0,
    gb_per_s: Bandwidth = 2.2,
) -> dict[str, pl.DataFrame]:
    """Seconds between two real processes, unpaced: messages of 16 KiB to 64 MiB, and ways to receive blocks.

    The receiver asks for each message and takes one at a time, as one-sided reads do. λScale packs the tensors of a
    block into one region; its ablation uses pieces of 1 MiB, and makes memory in pieces as blocks arrive. The buffer
    stands for transfers that cannot reach a GPU directly. The formula's α and B are those of the sliders, and it
    knows what pieces cost but nothing of memory and buffers; a real run's own α and B are fitted to every second size,
    and the others are laid beside that fit.
    """
    if context.backend == "torch":
        tables = _real(context, blocks, block_mib * MIB, piece_mib * MIB)
    else:
        tables = by_formula(overhead_us, gb_per_s)
        cost = Hockney(alpha_s=overhead_us * 1e-6, bytes_per_s=gb_per_s * 1e9)
        packed, pieces = (_block_s(cost, block_mib * MIB, size) for size in (block_mib * MIB, piece_mib * MIB))
        ways = [(ALL_ON, 0, blocks * packed, 1.0), (PIECES, 0, blocks * pieces, pieces / packed)]
        tables["ablation"] = pl.DataFrame(ways, schema=["way", "turn", "seconds", "slower"], orient="row")
    named = tables["sweep"].with_columns(series=pl.lit(SWEPT))
    known = curve_rows(named, "series", "message_bytes", "gigabyte_s", "s")
    off = tables["ablation"].group_by("way", maintain_order=True).agg(pl.col("slower").median())
    known += [(SLOWER, way, slower, "1") for way, slower in off.iter_rows()]
    return {**tables, "headline": headline(known)}


def _real(context: Context, blocks: int, block_bytes: int, piece_bytes: int) -> dict[str, pl.DataFrame]:
    from workbench.executor.processes import Pool
    from workbench.executor.transformer_serving.packing import Way
    from workbench.scaling.real.packing import block_times, message_times

    ways = {
        ALL_ON: Way(blocks, block_bytes, block_bytes),
        PIECES: Way(blocks, block_bytes, piece_bytes),
        ON_ARRIVAL: Way(blocks, block_bytes, block_bytes, ahead=False),
        BUFFERED: Way(blocks, block_bytes, block_bytes, direct=False),
        EVERY_OFF: Way(blocks, block_bytes, piece_bytes, ahead=False, direct=False),
    }
    with Pool(2) as pool:
        context.tell("real run: messages of all sizes")
        swept = message_times(SIZES, READINGS[context.mode], pool=pool, stop=context.give_way)
        context.tell("real run: packed or not, ahead or not, direct or not")
        took_s = block_times(list(ways.values()), REPEATS[context.mode], pool=pool, stop=context.give_way)
    ablation = [
        {"way": way, "turn": turn, "seconds": float(took_s[turn, place]), "slower": float(took_s[turn, place] / first)}
        for place, way in enumerate(ways)
        for turn, first in enumerate(took_s[:, 0])
    ]
    return {**measured(context, swept.seconds), "ablation": pl.DataFrame(ablation)}
