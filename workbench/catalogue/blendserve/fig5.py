"""Figure 5: the workflow on a tree of five requests, sorted, split and walked."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.density import request_density
from workbench.blending.model.estimating import estimate
from workbench.blending.model.prompts import pool_of_tokens
from workbench.blending.model.transforming import NONE, OUTLIER, transform
from workbench.blending.model.tree import tree_of
from workbench.catalogue.blendserve.jobs import costs_for
from workbench.catalogue.blendserve.parameters import On, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Assumption, Match, experiment

PROMPTS = ((1, 1, 11), (1, 1, 12), (1, 1, 13), (2, 2, 14), (2, 2, 15))
"""Requests 1 to 3 share a prefix, 4 and 5 another."""
OUTPUTS = (20, 150, 10, 140, 110)
PLACE = "request served at place x in the five-request example"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["order"].filter(pl.col("stage") == "split")
    moved = ", ".join(str(one) for one in table.filter(pl.col("moved"))["request"]) or "nobody"
    return (
        f"Sorted and split, the five requests are served in the order {', '.join(map(str, table['request']))}; "
        f"moved out of a subtree: {moved}."
    )


@experiment(
    "blendserve/fig5",
    title="A tree of five requests, sorted and split",
    question="In which order are five requests served when the tree is sorted by density and an outlier moves?",
    backends=("analytic",),
    seconds={"analytic": 0.1},
    draw="blending_basics.five",
    say=_say,
    matches=(
        Match(
            (PLACE,),
            assumptions=(Assumption("a leaf may cost the two tokens of its prefix", {"threshold_tokens": 0}),),
        ),
        Match(
            ("share of the run spent on tree, sampling and transformation",),
            incomparable={"": "five requests are no run to take a share of; blendserve/tree-operation times the tree"},
        ),
    ),
)
def fig5(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    second: Annotated[
        int,
        Par("Output of request 2", "tokens", low=1, high=5000, log=True, free=True, source="chosen: the figure shows no"
            " lengths; its order needs request 2 to be the longest, in the denser of the two groups"),
    ] = OUTPUTS[1],
    threshold_tokens: Annotated[
        int, Par("Prefix tokens that a move may cost", "tokens", low=0, high=10, source="chosen: the prefix has two")
    ] = 2,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """The order down the tree, after sorting, and after splitting; lengths are known."""
    costs = costs_for(context, model, accelerator)
    outputs = [OUTPUTS[0], second, *OUTPUTS[2:]]
    pool = pool_of_tokens(PROMPTS, outputs)
    tree = tree_of(pool)
    known = estimate(pool, tree, "oracle")
    density = request_density(pool.prompt, pool.output, costs)
    found = transform(pool, tree, known, costs, OUTLIER, threshold=float(threshold_tokens))
    stages = {
        "down the tree": tree.dfs(),
        "sorted": transform(pool, tree, known, costs, NONE).order,
        "split": found.order,
    }
    rows = [
        {
            "stage": stage, "place": place + 1, "request": int(who) + 1, "density": float(density[who]),
            "group": 1 if who < 3 else 2, "moved": stage == "split" and bool(np.isin(who, found.split)),
        }
        for stage, order in stages.items()
        for place, who in enumerate(order)
    ]  # fmt: skip
    known_rows = [(PLACE, place + 1, int(who) + 1, "1") for place, who in enumerate(found.order)]
    return {"order": pl.DataFrame(rows), "headline": headline(known_rows)}
