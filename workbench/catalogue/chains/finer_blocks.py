"""Layers cut into finer blocks: less memory that holds nothing, more overhead."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains import common
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.monotone import monotone
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.chains import Fleet, compose, tune
from workbench.results import Verdict

SPLITS = (1, 2, 3, 4)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    means = tables["splits"].group_by("splits", maintain_order=True).agg(pl.col(pl.Float64).mean()).sort("splits")
    first, last = means.row(0, named=True), means.row(-1, named=True)
    return (
        f"Layers cut in {SPLITS[-1]} leave {last['unused_gb']:.2f} GB of a server unused instead of "
        f"{first['unused_gb']:.2f}; the best lower bound goes from {first['lower_s']:.4g} to {last['lower_s']:.4g} s."
    )


def _less(draft: Draft) -> list[Verdict]:
    table = draft.tables["splits"]
    keys = ["draw", *(name for name in ("replication",) if name in table.columns)]
    runs = [part.sort("splits")["coarse_gb"].to_list() for _, part in table.group_by(keys, maintain_order=True)]
    claim = "finer blocks leave less memory unused at one c"
    return [monotone(draft, claim, [[run[0], run[-1]] for run in runs], falling=True, blame="c stays the same")]


@experiment(
    "chains/finer-blocks",
    title="Would finer blocks help?",
    question="If a layer could be cut, would servers waste less memory, and would jobs be done sooner?",
    backends=("analytic",),
    seconds={"analytic": 1.5},
    draw="chains_tuning.finer_blocks",
    panels=("response", "memory"),
    say=_say,
    stochastic=True,
    judges=(_less,),
)
def finer_blocks(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    model: common.Served = "bloom-176b",
    servers: common.Servers = 20,
    fast_share: common.FastShare = 0.2,
    arrival_rate_per_s: Annotated[
        float,
        Par("Arrivals", "1/s", low=0.02, high=1.2, step=0.02, status="published", source=f"{common.SUMMARY}: 0.2"),
    ] = 0.2,
    reserved: Annotated[
        int, Par("Jobs reserved for, where memory is compared", low=1, high=30, step=1, source="the paper: c = 7")
    ] = 7,
    draws: common.Draws = 3,
) -> dict[str, pl.DataFrame]:
    """The best c and its lower bound with 1 to 4 blocks a layer, and memory that holds nothing.

    Weights, cache and seconds of a block fall with its size; the overhead of a block does not.
    """
    given = common.setting(context, cluster, model, servers, fast_share)
    rows, curves = [], []
    for number, draw in enumerate(common.draws(context, given, draws)):
        for splits in SPLITS:
            context.tell(f"draw {number + 1} of {draws}, {splits} blocks a layer")
            fleet = split(draw.fleet, splits, given.overheads.block_s)
            found = tune(fleet, arrival_rate_per_s)
            c = found.best["lower bound"]
            if c is None:
                raise common.unable("Finer blocks")
            lower = found.table.filter(pl.col("reserved") == c)["lower_s"][0]
            rows.append((number, splits, c, lower, _unused_gb(fleet, c), _unused_gb(fleet, reserved)))
            if number == 0:
                curve = found.table.filter(pl.col("lower_s").is_not_null()).select("reserved", "lower_s").rows()
                curves += [(splits, *row) for row in curve]
    columns = {"draw": pl.Int64, "splits": pl.Int64, "reserved": pl.Int64}
    columns |= dict.fromkeys(("lower_s", "unused_gb", "coarse_gb"), pl.Float64)
    table = pl.DataFrame(rows, schema=columns, orient="row")
    means = table.group_by("splits", maintain_order=True).agg(pl.col(pl.Float64).mean())
    known = []
    for splits, lower, unused, _ in means.rows():
        known.append(("lower bound of the mean response at the best c, x = blocks of a layer", splits, lower, "s"))
        known.append(
            ("memory of a server that holds nothing, mean, x = blocks of a layer", splits, unused * 1e9, "bytes")
        )
    curve = pl.DataFrame(curves, schema=["splits", "reserved", "lower_s"], orient="row")
    return {"splits": table, "curve": curve, "headline": headline(known)}


def split(fleet: Fleet, splits: int, overhead_s: float) -> Fleet:
    """The same servers with every layer cut into so many blocks; bytes are rounded up to whole ones."""
    return Fleet(
        memory_bytes=fleet.memory_bytes,
        communication_s=fleet.communication_s,
        compute_s=(fleet.compute_s - overhead_s) / splits + overhead_s,
        layers=fleet.layers * splits,
        block_bytes=-(-fleet.block_bytes // splits),
        cache_bytes=-(-fleet.cache_bytes // splits),
    )


def _unused_gb(fleet: Fleet, reserved: int) -> float:
    """Memory that holds neither weights nor cache of c jobs on them, mean over servers: what rounding costs."""
    made = compose(fleet, reserved)
    used = made.placement.blocks * (fleet.block_bytes + reserved * fleet.cache_bytes)
    return float(np.mean(fleet.memory_bytes - used)) / 1e9
