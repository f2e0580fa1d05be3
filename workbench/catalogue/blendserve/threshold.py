"""§5.2: what a split may cost, on a prefix tree that branches several times."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.bounds import bounds
from workbench.blending.model.branching import Branching, branching_pool
from workbench.blending.model.density import request_density
from workbench.blending.model.estimating import estimate
from workbench.blending.model.ordering import blended
from workbench.blending.model.running import serve
from workbench.blending.model.staging import ABOUT, falling
from workbench.blending.model.transforming import BUDGET, KEPT, OUTLIER, transform
from workbench.blending.model.tree import sharing, tree_of
from workbench.catalogue.blendserve.jobs import costs_for, rates_of
from workbench.catalogue.blendserve.parameters import MEASURED, On, Overlap, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

REQUESTS, OUTPUT = 2_000, 100
POOL_SHARE = 1 / 4
"""Of the KV pool: so few requests are then many times what fits."""
POINTS = 7


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["thresholds"]
    chosen = table.filter(pl.col("chosen")).row(0, named=True)
    none, most = table.sort("threshold_tokens").row(0, named=True), table.sort("falling").row(-1, named=True)
    return (
        f"Without a split {none['kept']:.0%} of the sharing is kept and densities fall with a rank correlation of "
        f"{none['falling']:.2f}; at {chosen['threshold_tokens']:,.0f} tokens {chosen['kept']:.1%} is kept at "
        f"{chosen['falling']:.2f}; the most, {most['falling']:.2f}, leaves {most['kept']:.0%}. Throughput: "
        f"{none['share']:.1%}, {chosen['share']:.1%} and {most['share']:.1%} of the practical optimum."
    )


@experiment(
    "blendserve/threshold",
    title="What does the threshold of splitting buy?",
    question="A request that leaves its subtree computes its prefix anew: how much order does how much sharing buy?",
    backends=("compiled",),
    seconds={"compiled": 1},
    draw="blending_tree.thresholds",
    panels=("order", "throughput"),
    say=_say,
    stochastic=True,
)
def threshold(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    levels: Annotated[int, Par("Shared segments above a request", low=1, high=4, free=True, source="chosen")] = 4,
    shared: Annotated[
        int, Par("Mean shared segment", "tokens", low=20, high=1000, log=True, step=0.1, free=True, source="chosen")
    ] = 200,
    outliers: Annotated[
        float, Par("Requests that write longer than their group", low=0.0, high=0.5, step=0.05, free=True,
                   source="chosen")
    ] = 0.1,
    long: Annotated[float, Par("How many times longer", low=2.0, high=30.0, step=1.0, free=True, source="chosen")] = 20,
    sampled: Annotated[
        float, Par("Requests sampled", low=0.01, high=1.0, log=True, step=0.1, free=True,
                   source="chosen: with fewer an outlier is not known, and stays")
    ] = 0.5,
    split: Annotated[
        str, Par("How splits are found", choices=(OUTLIER, BUDGET), free=True,
                 source="BlendServe §5.2 and its Algorithm 2 differ")
    ] = OUTLIER,
    overlap: Overlap = MEASURED,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Sharing kept, rank correlation of densities with a falling order, and throughput, by threshold.

    Starred is the threshold that §5.4 asks for, the largest that keeps 99 % of the sharing. The run is short: its last
    long requests take much of the time, whatever the order.
    """
    costs = costs_for(context, model, accelerator)
    costs = costs.model_copy(update={"pool_bytes": costs.pool_bytes * POOL_SHARE})
    context.cite(
        "KV pool of this run", costs.pool_bytes, "bytes", "chosen", "a quarter, as the pool of requests is small"
    )
    branches = 3
    shape = Branching(
        levels, branches, -(-REQUESTS // branches**levels), shared, output=OUTPUT, outliers=outliers, long=long
    )
    pool = branching_pool(shape, context.random("tree"))
    tree = tree_of(pool)
    known = estimate(pool, tree, share=sampled, rng=context.random("sample"))
    density, most = request_density(pool.prompt, known.output, costs, ABOUT), sharing(pool, tree)
    engine = rates_of(context, accelerator, overlap).engine(costs)
    best_s = bounds(pool, tree, engine).practical_s
    usual = transform(pool, tree, known, costs, split, ABOUT, kept=KEPT)
    edges = tree.inherited if split == OUTLIER else np.geomspace(1, tree.inherited.sum() + 1, 1000)
    tries = {0.0, usual.threshold, *np.quantile(edges, np.linspace(0, 1, POINTS), method="nearest").astype(float)}
    rows = []
    for tokens in sorted(tries):
        context.tell(f"a split may cost {tokens:,.0f} tokens")
        moved = usual if tokens == usual.threshold else transform(
            pool, tree, known, costs, split, ABOUT, threshold=tokens
        )  # fmt: skip
        run = serve(pool, tree, known, blended(moved, pool, tree, known, costs, ABOUT), costs, "feedback")
        rows.append(
            {"threshold_tokens": float(tokens), "kept": moved.sharing / most, "falling": falling(density[moved.order]),
             "split": moved.split.size / pool.size, "share": best_s / float(run.seconds(engine).step_s.sum()),
             "chosen": bool(tokens == usual.threshold)}
        )  # fmt: skip
    known_rows = [(name, row["threshold_tokens"], row[column], "1") for row in rows for name, column in (
        ("sharing kept, x = threshold", "kept"), ("rank correlation, x = threshold", "falling"),
        ("share of the practical optimum, x = threshold", "share"))]  # fmt: skip
    return {"thresholds": pl.DataFrame(rows), "headline": headline(known_rows)}
