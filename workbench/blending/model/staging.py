"""A prefix tree on its way to a blended order: the same tree as built, estimated, sorted, split and merged."""

from typing import NamedTuple

import numpy as np

from workbench.blending.model.costs import Costs
from workbench.blending.model.density import Density
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.ordering import units_of
from workbench.blending.model.prompts import Pool
from workbench.blending.model.transforming import NONE, OUTLIER, Transformed, transform
from workbench.blending.model.tree import Tree, weigh

BUILT, ESTIMATED, SORTED, SPLIT, MERGED = STAGES = ("as built", "estimated", "sorted", "split", "merged")
ABOUT = Density(length_biased=True)


class Staged(NamedTuple):
    """A tree at one stage.

    Attributes:
        order: int64[n], the requests from left to right.
        parent: int32[v], of every node of the prefix tree; -1 for the root.
        level: int64[v], edges below the root. place: float64[v], the mean place of the requests below, NaN for none.
        tokens: int64[v], prompt tokens between a node and its parent.
        density: float64[v], compute over memory time by the estimates, of all requests below.
        unit: int64[n], by place: requests of one unit are served as one by the scanner.
        unit_density: float64[u], of every unit.
        moved: int64[m], requests that hang below the root now.
        sharing: sharing ratio that is left.
    """

    order: np.ndarray
    parent: np.ndarray
    level: np.ndarray
    place: np.ndarray
    tokens: np.ndarray
    density: np.ndarray
    unit: np.ndarray
    unit_density: np.ndarray
    moved: np.ndarray
    sharing: float


def staged(pool: Pool, tree: Tree, estimates: Estimates, costs: Costs, stage: str, threshold: float) -> Staged:
    """The tree at a stage.

    Parameters:
        pool, tree, estimates: the requests and what is known of them. At the first stage nothing is: densities count
            from the second one on.
        costs: what densities count.
        stage: one of `STAGES`.
        threshold: prefix tokens that moving a request below the root may cost.
    """
    whole = transform(pool, tree, estimates, costs, NONE, ABOUT)
    moved = transform(pool, tree, estimates, costs, OUTLIER, ABOUT, threshold=threshold)
    found: Transformed = moved if stage in (SPLIT, MERGED) else whole
    order = tree.dfs() if stage in (BUILT, ESTIMATED) else found.order
    parent, tokens = tree.parent.copy(), tree.tokens.copy()
    parent[tree.leaf[found.split]] = 0
    tokens[tree.leaf[found.split]] += tree.inherited[found.split]
    density = weigh(pool, parent, tree, estimates.output, estimates.square, costs, ABOUT).density
    units = units_of(order, pool, tree, estimates, costs, ABOUT)
    unit = units.unit if stage == MERGED else np.arange(order.size)
    return Staged(
        order, parent, _levels(parent), _places(parent, tree.leaf[order]), tokens, density, unit, units.density,
        found.split, found.sharing,
    )  # fmt: skip


def _levels(parent: np.ndarray) -> np.ndarray:
    level = np.zeros(parent.size, np.int64)
    for node in range(1, parent.size):
        level[node] = level[parent[node]] + 1
    return level


def _places(parent: np.ndarray, leaves: np.ndarray) -> np.ndarray:
    """Mean place of the leaves below each node."""
    total, count = np.zeros(parent.size), np.zeros(parent.size)
    total[leaves], count[leaves] = np.arange(leaves.size), 1
    for node in range(parent.size - 1, 0, -1):
        total[parent[node]] += total[node]
        count[parent[node]] += count[node]
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def falling(density: np.ndarray) -> float:
    """Rank correlation of leaves' densities with a falling order: 1 where each is at most the one before.

    Pairs that fall less pairs that rise, over both (Goodman and Kruskal's gamma: Kendall's coefficient without the
    pairs of equal densities); 1 where none differ.
    """
    from scipy.stats import kendalltau

    _, alike = np.unique(density, return_counts=True)
    pairs = density.size * (density.size - 1) // 2
    differ = pairs - int((alike * (alike - 1) // 2).sum())
    if not differ:
        return 1.0
    tau_b = kendalltau(np.arange(density.size), -np.asarray(density)).statistic
    return round(float(tau_b) * (pairs * differ) ** 0.5) / differ
