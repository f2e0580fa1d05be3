"""Five servers: the chains that greedy placement forms, and those that cache allocation finds besides."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.chains.common import SUMMARY
from workbench.catalogue.chains.composed import chains_table, links_table, names, servers_table
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.chains import Composition, Fleet, all_chains, compose
from workbench.errors import UserError

MEMORY_GB, COMMUNICATION_S, LAYERS = (2, 3, 2, 2, 2), (1.0, 2.0, 1.0, 1.0, 1.0), 3
DECI_GB = 10**8
_PAPER = f"{SUMMARY} §3.1.4"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["chains"]
    rates = dict(table.group_by("algorithm", maintain_order=True).agg(pl.col("rate_per_s").sum()).rows())
    counts = dict(table.group_by("algorithm", maintain_order=True).len().rows())
    found, rate = counts.get("GCA", 0), rates.get("GCA", 0.0)
    jobs = f"{parameters['reserved']} job{'s' if parameters['reserved'] > 1 else ''}"
    return (
        f"Placement forms {counts['GBP-CR']} chains with {jobs} each ({rates['GBP-CR']:.3g}/s); "
        f"through the same blocks cache allocation runs {found} chain{'' if found == 1 else 's'} and serves "
        f"{rate:.3g} jobs/s."
    )


@experiment(
    "chains/chain-example",
    title="Which chains run through five servers?",
    question="Once blocks are placed, are the disjoint chains that placement had in mind all there are?",
    backends=("analytic",),
    seconds={"analytic": 0.01},
    draw="chains_placement.example",
    panels=("blocks", "chains"),
    say=_say,
)
def chain_example(
    context: Context,
    *,
    eps_s: Annotated[
        float,
        Par(
            "Seconds per block on j1; l times as many on j_l",
            "s",
            low=0.001,
            high=0.5,
            step=0.001,
            free=True,
            source=f"{_PAPER}: eps, small",
        ),
    ] = 0.001,
    reserved: Annotated[
        int, Par("Jobs reserved for (c)", low=1, high=5, status="published", source=f"{_PAPER}: c = 1")
    ] = 1,
    rounds: Annotated[
        int,
        Par(
            "Rounds of cache allocation (GCA) shown",
            low=0,
            high=6,
            source="chosen: all there are; fewer show GCA's steps",
        ),
    ] = 6,
) -> dict[str, pl.DataFrame]:
    """GBP-CR's groups and GCA's chains, their seconds as a + b eps, capacities, and slots left over.

    Each round of GCA adds one chain, the quickest that the slots left over allow; with fewer `rounds` tables and figure
    show the first of them.
    """
    fleet = Fleet(
        memory_bytes=[gb * 10 * DECI_GB for gb in MEMORY_GB],
        communication_s=COMMUNICATION_S,
        compute_s=[eps_s * (j + 1) for j in range(len(MEMORY_GB))],
        layers=LAYERS,
        block_bytes=10 * DECI_GB,
        cache_bytes=DECI_GB,
    )
    made = compose(fleet, reserved)
    if not made.chains:
        raise UserError(f"With room for {reserved} jobs on each block these servers cannot host the model.")
    servers, chains = servers_table(made, rounds), chains_table(made, rounds)
    possible = len(all_chains(fleet, made.placement))
    context.cite("chains that are possible through this placement", possible, "1", "computed", "walked one by one")
    return {
        "servers": servers,
        "chains": chains,
        "links": links_table(made.chains[:rounds]),
        "headline": headline(_known(made, eps_s)),
    }


def _known(made: Composition, eps_s: float) -> list[tuple[str, object, float, str]]:
    """Seconds of a chain are a + b eps: a from communication alone, b from what is left."""
    rows: list[tuple[str, object, float, str]] = []
    for chain in made.chains:
        name = f"GCA chain {names(chain.servers)}"
        fixed = sum(COMMUNICATION_S[j] for j in chain.servers)
        rows += [
            (f"{name}: service time at eps = 0", "", fixed, "s"),
            (f"{name}: added service time per eps", "", round((chain.service_s - fixed) / eps_s, 9), "1"),
            (f"{name}: capacity", "", chain.capacity, "1"),
        ]
    for j, (first, blocks, left) in enumerate(
        zip(made.placement.first.tolist(), made.placement.blocks.tolist(), made.left.tolist(), strict=True)
    ):
        rows += [
            ("slots left over", f"j{j + 1}", left, "1"),
            ("GBP-CR first block of server x", f"j{j + 1}", first + 1, "1"),
            ("GBP-CR blocks of server x", f"j{j + 1}", blocks, "1"),
        ]
    return rows
