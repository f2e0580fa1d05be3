"""Servers of the reader's choice: blocks placed by GBP-CR, cache allocated by GCA, round by round."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains import common
from workbench.catalogue.chains.composed import chains_table, links_table, servers_table
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.chains import Composition, Fleet, compose, count_chains, fleet_of, reserve, servers_of, token_times
from workbench.errors import UserError
from workbench.profiles import Accelerator

MOST_SERVERS = 40
"""Servers that a picture still shows."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    row, c = tables["sums"].row(0, named=True), parameters["reserved"]
    jobs = f"{c} job{'s' if c > 1 else ''}"
    all_of_them = "the server hosts" if row["servers"] == 1 else f"these {row['servers']} servers host"
    if not row["hosted"]:
        return (
            f"No server hosts a block: the largest has {row['largest_gb']:.4g} GB, and a block takes "
            f"{row['block_gb']:.4g} GB beside {jobs} of {row['cache_gb']:.4g} GB cache each; add memory, or reserve "
            "for fewer."
        )
    if not row["chains"]:
        return (
            f"With room for {jobs} on each block {all_of_them} {row['hosted']} of the {row['layers']} blocks that a "
            "job needs; add servers or memory, or reserve for fewer."
        )
    shown = tables["chains"].filter(pl.col("algorithm") == "GCA")
    groups = tables["chains"].filter(pl.col("algorithm") == "GBP-CR")
    ways = "one way leads" if row["possible"] == 1 else f"{row['possible']:,} ways lead"
    text = (
        f"Placement has {len(groups)} disjoint chain{'s' if len(groups) > 1 else ''} in mind, for "
        f"{groups['rate_per_s'].sum():.3g} jobs/s; {ways} through the blocks. "
    )
    if not len(shown):
        return f"{text}No round of GCA is shown yet."
    return f"{text}GCA's rounds shown ({len(shown)} of {row['chains']}) serve {shown['rate_per_s'].sum():.3g} jobs/s."


@experiment(
    "chains/builder",
    title="Build chains of your own servers",
    question="Which blocks do servers of your choice host, which chains run through them, and what is left over?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="chains_placement.built",
    panels=("blocks", "chains"),
    say=_say,
)
def builder(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    model: common.Served = "bloom-176b",
    own_servers: Annotated[
        bool, Par("As many servers as the profile has, with its round trips", source="chosen: the sliders below")
    ] = False,
    fast: Annotated[int, Par("Servers of the kind with most memory", low=0, high=12, step=1, source="chosen")] = 4,
    slow: Annotated[int, Par("Servers of the kind with least", low=0, high=20, step=1, source="chosen")] = 8,
    fast_gb: Annotated[
        float, Par("Memory of the first (0: the profile's)", "GB", low=0, high=160, step=1, source="the profile's")
    ] = 0.0,
    slow_gb: Annotated[
        float, Par("Memory of the second (0: the profile's)", "GB", low=0, high=160, step=1, source="the profile's")
    ] = 0.0,
    round_trip_s: Annotated[
        float, Par("Round trip to each server (0: drawn)", "s", low=0, high=0.5, step=0.005, source="drawn, as there")
    ] = 0.0,
    seed: Annotated[
        int, Par("Seed of drawn round trips", low=0, high=999, step=1, free=True, source="chosen: the first draw")
    ] = 0,
    orchestrator: common.Orchestrator = "best-connected",
    types: common.Types = "nearest",
    reserved: common.Reserved = 7,
    rounds: Annotated[
        int,
        Par(
            "Rounds of cache allocation (GCA) shown", low=0, high=12, step=1, play=True,
            source="chosen: fewer show GCA's steps",
        ),
    ] = 12,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Blocks and slots of every server, GBP-CR's disjoint chains and GCA's, and how many ways there are.

    A mean job has 2,000 tokens in and 20 out, as in the paper's simulation. Of a profile with more than two kinds of
    servers those of most and of least memory are taken, unless its own servers are asked for.
    """
    if own_servers:
        fleet = _own(context, cluster, model, orchestrator, types, seed)
    elif not fast + slow:
        raise UserError("There is no server; choose at least one.")
    else:
        given = common.setting(context, cluster, model, fast + slow, 0.0, orchestrator=orchestrator, types=types)
        draw = common.drawn(given._replace(fast=fast), context.random(f"sites {seed}"))
        if round_trip_s:
            draw = common.at_sites(given, draw.fast, np.full(fast + slow, round_trip_s))
        stated = np.where(draw.fast, fast_gb, slow_gb)
        memory = np.where(stated > 0, np.round(stated * 1e9).astype(np.int64), draw.fleet.memory_bytes)
        fleet = draw.fleet.model_copy(update={"memory_bytes": memory})
    made = compose(fleet, reserved)
    shown = made.chains[:rounds]
    servers = servers_table(made, rounds).with_columns(memory_gb=pl.Series(fleet.memory_bytes / 1e9))
    sums = _sums(made)
    known = [
        ("jobs a second, disjoint chains", "", reserved * made.placement.group_rate_per_s, "1/s"),
        ("jobs a second, chains of GCA", "", made.rate_per_s if made.chains else 0.0, "1/s"),
    ]
    return {
        "servers": servers,
        "chains": chains_table(made, rounds),
        "links": links_table(shown),
        "sums": sums,
        "headline": headline(known),
    }


def _own(context: Context, cluster: Any, model: Any, orchestrator: str, types: str, seed: int) -> Fleet:
    """Every server of a profile, at its own round trips, or at drawn ones where it states none."""
    kinds, trips = servers_of(context.cluster(cluster))
    if len(kinds) > MOST_SERVERS:
        raise UserError(
            f"The profile has {len(kinds)} servers, more than a picture shows ({MOST_SERVERS}); choose how many of "
            "each kind instead."
        )
    given = common.setting(context, cluster, model, len(kinds), 0.0, orchestrator=orchestrator, types=types)
    if trips is None:
        trips = common.drawn(given, context.random(f"sites {seed}")).round_trip_s
    kinds: list[Accelerator] = list(kinds)
    times = token_times(kinds, trips, given.block, given.overheads)
    return fleet_of(kinds, given.layers, given.block, times, given.usual)


def _sums(made: Composition) -> pl.DataFrame:
    """What the sentence says of the whole."""
    fleet = made.fleet
    return pl.DataFrame(
        {
            "servers": [fleet.servers],
            "layers": [fleet.layers],
            "hosted": [int(reserve(fleet, made.reserved).sum())],
            "largest_gb": [float(fleet.memory_bytes.max()) / 1e9],
            "block_gb": [fleet.block_bytes / 1e9],
            "cache_gb": [fleet.cache_bytes / 1e9],
            "possible": [count_chains(fleet, made.placement)],
            "chains": [len(made.chains)],
        }
    )
