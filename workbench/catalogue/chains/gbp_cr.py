"""Greedy placement against random placements, and against every grouping of few servers."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains import common
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.chains import Fleet, fewest_chains, place, random_orders

WORSE = "share of instances in which GBP-CR needs more chains than brute force"
OBJECTIVE = "objective of GBP-CR over the best of 100 random placements"
RESERVED = (1, 2, 3, 5, 7, 8, 10)
SHARES = {0.0: 0.5, 0.2: 0.4}
"""Share of fast servers -> share of the possible chains that are needed: about half, and 40 %."""
INSTANCES, FEW, LAYERS = 250, 6, 4
MEMORIES = (12, 23, 46)
"""Tenths of a block: with 1 for cache they host 1, 2 and 4 blocks."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    instances = dict(tables["instances"].group_by("memory", maintain_order=True).agg(pl.col("worse").mean()).rows())
    objective = tables["objective"]
    best = objective.filter(pl.col("least").is_not_null())
    beaten = (best["greedy"] > best["least"]).sum()
    texts = [f"{share:.1%} with {memory} memory" for memory, share in instances.items()]
    return (
        f"Greedy placement takes a chain too many in {' and '.join(texts)}; {parameters['orders']} random orders of "
        f"{parameters['servers']} servers beat it in {beaten} of {len(best)} settings."
    )


@experiment(
    "chains/gbp-cr",
    title="How good is greedy placement?",
    question="Does taking servers by their time per block need as few chains as any grouping would?",
    backends=("analytic",),
    seconds={"analytic": 4},
    draw="chains_placement.greedy",
    panels=("placements", "instances"),
    say=_say,
    stochastic=True,
    matches=(
        Match((WORSE,), tolerance=0.6, note="a share of 250 random instances"),
        Match((OBJECTIVE,), tolerance=0.0),
    ),
)
def gbp_cr(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    model: common.Served = "bloom-176b",
    servers: common.Servers = 40,
    orchestrator: common.Orchestrator = "random",
    types: common.Types = "random",
    orders: Annotated[
        int, Par("Random placements", low=10, high=200, step=10, status="published", source=f"{common.SUMMARY}: 100")
    ] = 100,
    draws: common.Draws = 5,
) -> dict[str, pl.DataFrame]:
    """Objective c K(c) by c, greedy and random; and the fewest chains of 250 small instances by brute force.

    The rate to be reached is about half (equal servers) or 40 % (mixed ones) of what all greedy chains give; what the
    paper took was not readable.
    """
    rows = []
    for share, part in SHARES.items():
        given = common.setting(context, cluster, model, servers, share, orchestrator=orchestrator, types=types)
        for number, draw in enumerate(common.draws(context, given, draws)):
            context.tell(f"{share:.0%} fast servers, draw {number + 1} of {draws}")
            rng = context.random(f"orders {share} {number}")
            rows += [_row(draw.fleet, share, number, c, part, orders, rng) for c in RESERVED]
    columns = ["fast_share", "draw", "reserved", "greedy", "least", "median", "most"]
    objective = pl.DataFrame(rows, schema=columns, orient="row")
    instances = pl.concat([_instances(context, "equal", INSTANCES), _instances(context, "mixed", INSTANCES)])
    worse = dict(instances.group_by("memory").agg(pl.col("worse").mean()).rows())
    known = [
        (WORSE, f"equal memory, {INSTANCES} instances", worse["equal"], "1"),
        (WORSE, f"memories 1.2, 2.3 or 4.6, {INSTANCES} instances", worse["mixed"], "1"),
    ]
    compared = objective.filter(pl.col("least").is_not_null())
    if len(compared) and orders == 100:
        ratio = float((compared["greedy"] / compared["least"]).max())
        known.append((OBJECTIVE, f"eta 0 and 0.2; c {', '.join(map(str, RESERVED))}", ratio, "1"))
    return {"objective": objective, "instances": instances, "headline": headline(known)}


def _row(fleet: Fleet, share: float, number: int, c: int, part: float, orders: int, rng: np.random.Generator) -> tuple:
    """Greedy and random objectives of one c; random orders that do not reach the rate are left out."""
    needed = part * c * place(fleet, c).group_rate_per_s
    made = place(fleet, c, needed)
    found = random_orders(fleet, c, needed, orders, rng)
    found = c * found[~np.isnan(found)]
    spread = (float(found.min()), float(np.median(found)), float(found.max())) if found.size else (None, None, None)
    return share, number, c, float(c * made.groups), *spread


def _instances(context: Context, memory: str, count: int) -> pl.DataFrame:
    """Chains of greedy placement and of the best grouping, in instances where some grouping reaches the rate."""
    rng, rows = context.random(f"{memory} memory"), []
    while len(rows) < count:
        kinds = rng.choice(MEMORIES, FEW) if memory == "mixed" else np.full(FEW, rng.choice(MEMORIES))
        fleet = Fleet(
            memory_bytes=kinds,
            communication_s=rng.uniform(0.1, 2.0, FEW),
            compute_s=rng.uniform(0.01, 1.0, FEW),
            layers=LAYERS,
            block_bytes=10,
            cache_bytes=1,
        )
        needed = float(rng.uniform(0.05, 1.0)) * max(place(fleet, 1).group_rate_per_s, 0.1)
        fewest = fewest_chains(fleet, 1, needed)
        if fewest is None:
            continue
        made = place(fleet, 1, needed)
        rows.append((memory, made.groups if made.enough else None, fewest, not made.enough or made.groups > fewest))
        if len(rows) % 50 == 0:
            context.tell(f"{memory} memory: {len(rows)} of {count} instances")
    columns = {"memory": pl.String, "greedy": pl.Int64, "fewest": pl.Int64, "worse": pl.Boolean}
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(pl.col("worse").cast(pl.Float64))
