"""The prefix tree step by step: built, estimated, sorted, split, merged."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.branching import Branching, branching_pool
from workbench.blending.model.density import request_density
from workbench.blending.model.estimating import Estimates, estimate
from workbench.blending.model.prompts import Pool, pool_of_tokens
from workbench.blending.model.staging import ABOUT, BUILT, MERGED, STAGES, Staged, falling, staged
from workbench.blending.model.tree import Tree, sharing, tree_of
from workbench.catalogue.blendserve.fig5 import OUTPUTS, PROMPTS
from workbench.catalogue.blendserve.jobs import costs_for
from workbench.catalogue.blendserve.parameters import On, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment

DRAWN, FIVE = "one that branches", "the five requests of Fig 5"
BRANCHES = 2
REQUEST, SHARED, UNIT = "request", "shared", "unit"
"""Kinds of nodes; a unit stands for several requests."""
KEPT, FALLING = "sharing kept over the largest possible", "rank correlation with a falling order"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    stage = STAGES[parameters["step"] - 1]
    row = tables["stages"].filter(pl.col("stage") == stage).row(0, named=True)
    ranks = f"leaf densities follow a falling order with a rank correlation of {row['falling']:.2f}"
    if stage == BUILT:
        return f"As built: {row['requests']} requests below {row['shared']} shared segments; no density is known yet."
    if stage == MERGED:
        return f"Merged: {row['requests']} requests are {row['units']} units for the scanner; {ranks}."
    about = f"moved below the root: {row['moved']} of {row['requests']}; {row['kept']:.1%} of the sharing is kept; "
    return f"{stage.capitalize()}: {about if row['moved'] else ''}{ranks}."


@experiment(
    "blendserve/tree-steps",
    title="A prefix tree step by step",
    question="What do estimating, sorting, splitting and merging do to a prefix tree?",
    backends=("analytic",),
    seconds={"analytic": 0.1},
    draw="blending_tree.steps",
    say=_say,
)
def tree_steps(
    context: Context,
    *,
    step: Annotated[int, Par("Step: " + ", ".join(f"{n} {s}" for n, s in enumerate(STAGES, 1)), low=1, high=5,
                             free=True, play=True, source="BlendServe §5.1, §5.2, appendix A.2")] = 4,
    tree: Annotated[str, Par("Tree", choices=(DRAWN, FIVE), free=True, source="chosen")] = DRAWN,
    levels: Annotated[int, Par("Shared segments above a request", low=1, high=3, free=True, source="chosen")] = 2,
    members: Annotated[int, Par("Requests of a group", low=2, high=4, free=True, source="chosen")] = 4,
    outliers: Annotated[
        float, Par("Requests that write 20 times as much", low=0.0, high=0.5, step=0.05, free=True, source="chosen")
    ] = 0.15,
    sampled: Annotated[
        float,
        Par("Requests sampled", low=0.1, high=1.0, step=0.1, free=True,
            source="chosen: a real pool needs 1 %; here that would be nobody"),
    ] = 0.6,
    threshold_tokens: Annotated[
        int, Par("Prefix tokens that a move may cost", "tokens", low=0, high=1000, step=50, free=True, source="chosen")
    ] = 400,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Every node of the tree at every step: where it stands, prompt tokens of its segment, density by the estimates.

    A request that moved carries its whole prompt, which nobody shares with it any more.
    """
    costs = costs_for(context, model, accelerator)
    if tree == FIVE:
        pool = pool_of_tokens(PROMPTS, OUTPUTS)
    else:
        shape = Branching(levels, BRANCHES, members, outliers=outliers)
        pool = branching_pool(shape, context.random("tree"))
    prefixes = tree_of(pool)
    known = estimate(pool, prefixes, share=sampled, rng=context.random("sample"))
    density = request_density(pool.prompt, known.output, costs, ABOUT)
    rows, stages = [], []
    for number, stage in enumerate(STAGES, 1):
        found = staged(pool, prefixes, known, costs, stage, float(threshold_tokens))
        rows += _nodes(number, stage, found, pool, prefixes, known)
        stages.append(
            {"stage": stage, "requests": pool.size, "shared": int((prefixes.request < 0).sum()) - 1,
             "units": int(found.unit[-1]) + 1, "moved": found.moved.size,
             "kept": found.sharing / sharing(pool, prefixes), "falling": falling(density[found.order])}
        )  # fmt: skip
    known_rows = [(series, row["stage"], row[name], "1")
                  for row in stages for series, name in ((KEPT, "kept"), (FALLING, "falling"))]  # fmt: skip
    return {"nodes": pl.DataFrame(rows), "stages": pl.DataFrame(stages), "headline": headline(known_rows)}


def _nodes(number: int, stage: str, found: Staged, pool: Pool, tree: Tree, known: Estimates) -> list[dict[str, Any]]:
    """The nodes of one stage that are drawn, the root first."""
    many = np.bincount(found.unit)[found.unit] > 1
    hidden, units = set(), {}
    for place in np.flatnonzero(many):
        leaf = int(tree.leaf[found.order[place]])
        hidden.add(leaf)
        above = units.setdefault(int(found.unit[place]), int(found.parent[leaf]))
        units[int(found.unit[place])] = max(above, int(found.parent[leaf]))  # the group, where one of them stayed
    unit_of_node = {node: unit for unit, node in units.items() if node > 0}
    rows = []
    for node in range(tree.parent.size):
        if np.isnan(found.place[node]) or node in hidden:
            continue
        who, above, unit = int(tree.request[node]), int(found.parent[node]), unit_of_node.get(node)
        kind = UNIT if unit is not None else REQUEST if who >= 0 else SHARED
        places = np.flatnonzero(found.unit == unit) if unit is not None else np.array([found.place[node]])
        density = found.density[node] if unit is None else found.unit_density[unit]
        rows.append(
            {"step": number, "stage": stage, "node": node, "kind": kind, "request": who + 1 if who >= 0 else None,
             "requests": int(places.size) if unit is not None else 1, "place": float(places.mean()),
             "level": int(found.level[node]), "parent": above, "tokens": int(found.tokens[node]),
             "density": None if stage == BUILT else float(density),
             "sampled": bool(who >= 0 and known.sampled[who]), "moved": bool(np.isin(who, found.moved))}
        )  # fmt: skip
    for unit, node in units.items():
        if node > 0:
            continue
        places = np.flatnonzero(found.unit == unit)  # all of them were moved, and meet again below the root
        rows.append(
            {"step": number, "stage": stage, "node": -1 - unit, "kind": UNIT, "request": None,
             "requests": int(places.size), "place": float(places.mean()), "level": 1, "parent": 0,
             "tokens": int(pool.prompt[found.order[places]].mean()), "density": float(found.unit_density[unit]),
             "sampled": False, "moved": True}
        )  # fmt: skip
    return rows
