"""The tree put into an order that falls in density: sorted layer by layer, then split where that is cheap."""

from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.budget import open_by_budget
from workbench.blending.kernels.outliers import outliers
from workbench.blending.kernels.sorting import children_of, layer_sort, leaves_of
from workbench.blending.model.costs import Costs
from workbench.blending.model.density import PLAIN, Density
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.prompts import Pool
from workbench.blending.model.tree import Tree, sharing, weigh
from workbench.errors import UnknownName
from workbench.records import not_negative, share

OUTLIER, BUDGET, NONE = "outlier", "budget", "none"
SPLITS = (OUTLIER, BUDGET, NONE)
KEPT = 0.99
"""Share of the largest sharing ratio that splitting must keep: BlendServe §5.4."""


class Transformed(NamedTuple):
    """Requests from compute- to memory-intensive.

    Attributes:
        order: int64[n].
        threshold: prefix tokens that a split may cost (inf without splitting).
        split: int64[m], requests that were taken out of their subtree.
        sharing: ratio that the transformed tree keeps. rounds: sorts that were needed.
    """

    order: np.ndarray
    threshold: float
    split: np.ndarray
    sharing: float
    rounds: int


def transform(
    pool: Pool, tree: Tree, estimates: Estimates, costs: Costs, split: str = OUTLIER, about: Density = PLAIN,
    *, kept: float = KEPT, threshold: float | None = None,
) -> Transformed:  # fmt: skip
    """Sort the tree by density, and split what stands in the wrong place.

    Parameters:
        pool, tree, estimates: the requests and what is known of them.
        costs, about: what densities count.
        split: "outlier" (leaves that break the falling order move to the root if that costs few prefix tokens),
            "budget" (prefix tokens are dealt out from the root down, whatever the densities), or "none".
        kept: share of the largest sharing ratio that the largest admissible threshold must keep.
        threshold: prefix tokens in place of the search; of one leaf for "outlier", of the whole tree for "budget".

    Raises:
        UnknownName: another way of splitting. InputError: a share outside 0 to 1, or a threshold below 0.
    """
    if split not in SPLITS:
        raise UnknownName("way of splitting", split, SPLITS)
    if split == NONE:
        return _outliers(pool, tree, estimates, costs, about, -1.0)._replace(threshold=0.0)
    attempt = _outliers if split == OUTLIER else _budget
    if threshold is not None:
        limit = threshold if threshold == np.inf else not_negative(threshold, "threshold")
        return attempt(pool, tree, estimates, costs, about, limit)
    least = share(kept, "kept") * sharing(pool, tree)
    candidates = _candidates(tree, split)
    low, best = 0, attempt(pool, tree, estimates, costs, about, candidates[0])
    high = len(candidates)
    while high - low > 1:
        middle = (low + high) // 2
        found = attempt(pool, tree, estimates, costs, about, candidates[middle])
        if found.sharing >= least:
            low, best = middle, found
        else:
            high = middle
    return best


def _candidates(tree: Tree, split: str) -> np.ndarray:
    """Thresholds to choose from, rising: what a leaf can cost, or budgets from a token to all that is shared."""
    if split == OUTLIER:
        return np.unique(np.concatenate([[0], tree.inherited])).astype(float)
    most = float(tree.inherited.sum()) + 1.0
    return np.concatenate([[0.0], np.geomspace(1.0, most, 2**8)])


def _outliers(
    pool: Pool, tree: Tree, estimates: Estimates, costs: Costs, about: Density, threshold: float
) -> Transformed:
    """Sort, move outliers that cost at most the threshold, and again, until none is left that may move.

    A leaf moves once at most, so this ends.
    """
    parent, inherited = tree.parent.copy(), tree.inherited
    moved, may = np.zeros(pool.size, bool), (inherited <= threshold) & (parent[tree.leaf] > 0)
    rounds = 0
    while True:
        order = _sorted_leaves(pool, tree, parent, estimates, costs, about)
        rounds += 1
        density = _leaf_density(pool, estimates, costs, about)[order]
        out = np.empty(order.size, bool)
        outliers(density, (may & ~moved)[order], out)
        chosen = order[out]
        if not chosen.size:
            break
        moved[chosen] = True
        parent[tree.leaf[chosen]] = 0
    return Transformed(order, threshold, np.flatnonzero(moved), _sharing_after(pool, tree, moved), rounds)


def _leaf_density(pool: Pool, estimates: Estimates, costs: Costs, about: Density) -> np.ndarray:
    squares = estimates.square if about.length_biased else estimates.output**2
    compute = pool.prompt + estimates.output + about.pair_weight(costs) * pool.prompt.astype(float) ** 2
    return compute * about.balance(costs) / (pool.prompt * estimates.output + 0.5 * squares)


def _sorted_leaves(pool, tree, parent, estimates, costs, about) -> np.ndarray:
    weights = weigh(pool, parent, tree, estimates.output, estimates.square, costs, about)
    first, children = np.empty(parent.size + 1, np.int64), np.empty(parent.size - 1, np.int32)
    children_of(parent, weights.sums[:, 0] > 0, first, children)
    layer_sort(first, children, weights.density)
    order = np.empty(pool.size, np.int64)
    leaves_of(np.zeros(1, np.int32), first, children, tree.request, order)
    return order


def _sharing_after(pool: Pool, tree: Tree, moved: np.ndarray) -> float:
    """Sharing when moved leaves compute their whole prompt and nodes without leaves compute nothing."""
    stays = np.concatenate([[0], np.cumsum((tree.request >= 0) & ~moved[tree.request])])
    below = stays[tree.last] - stays[:-1]
    inner = (tree.request < 0) & (below > 0)
    computed = tree.tokens[inner].sum() + tree.tokens[tree.leaf].sum() + tree.inherited[moved].sum()
    return 1.0 - (float(computed) + float(pool.output.sum())) / pool.tokens


def _budget(
    pool: Pool, tree: Tree, estimates: Estimates, costs: Costs, about: Density, threshold: float
) -> Transformed:
    """The pieces that a budget leaves whole, sorted by density."""
    weights = weigh(pool, tree.parent, tree, estimates.output, estimates.square, costs, about)
    first, children = np.empty(tree.parent.size + 1, np.int64), np.empty(tree.parent.size - 1, np.int32)
    children_of(tree.parent, np.ones(tree.parent.size, bool), first, children)
    layer_sort(first, children, weights.density)
    pieces = np.empty(tree.parent.size, np.int32)
    pieces = pieces[: open_by_budget(first, children, tree.depth, threshold, pieces)]
    pieces = pieces[np.argsort(-weights.density[pieces], kind="stable")]
    order = np.empty(pool.size, np.int64)
    leaves_of(pieces, first, children, tree.request, order)
    edges = np.concatenate([[0], np.cumsum(tree.tokens)])
    above = np.where(pieces > 0, tree.depth[tree.parent[pieces]], 0)
    computed = float((edges[tree.last[pieces]] - edges[pieces] + above).sum())
    ratio = 1.0 - (computed + float(pool.output.sum())) / pool.tokens
    apart = tree.request[pieces]
    apart = apart[apart >= 0]
    return Transformed(order, threshold, np.sort(apart[tree.inherited[apart] > 0]).astype(np.int64), ratio, 1)
