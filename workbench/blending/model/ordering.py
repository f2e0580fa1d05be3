"""Orders in which requests can be served, and the units that a dual scan walks over."""

import numpy as np

from workbench.blending.kernels.layout import Order
from workbench.blending.model.costs import Costs
from workbench.blending.model.density import PLAIN, Density
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.prompts import Pool
from workbench.blending.model.transforming import Transformed
from workbench.blending.model.tree import Tree
from workbench.errors import UnknownName

DFS, BALANCE, LONGEST, GROUPS = "dfs", "balance", "longest-first", "prefix-groups"
ORDERS = (DFS, BALANCE, LONGEST, GROUPS)


def order_of(
    pool: Pool, tree: Tree, estimates: Estimates, name: str, rng: np.random.Generator | None = None
) -> np.ndarray:
    """The requests in one of the orders that are not blended, int64[n].

    Parameters:
        pool, tree, estimates: the requests and what is known of them.
        name: "dfs" (down the prefix tree, children in the order of the trace), "balance" (a random permutation, the
            paper's NanoFlow-Balance), "longest-first" (by estimated output), "prefix-groups" (requests that share their
            deepest prefix together, groups with the larger decode share first, like BatchLLM).
        rng: draws the permutation.

    Raises:
        UnknownName: another order.
    """
    if name == DFS:
        return tree.dfs()
    if name == BALANCE:
        return (rng or np.random.default_rng(0)).permutation(pool.size)
    if name == LONGEST:
        return np.argsort(-estimates.output, kind="stable")
    if name == GROUPS:
        return _groups(pool, tree, estimates)
    raise UnknownName("order", name, ORDERS)


def _groups(pool: Pool, tree: Tree, estimates: Estimates) -> np.ndarray:
    """Groups of a common deepest prefix by falling decode share; who shares nothing is a group alone."""
    above = tree.parent[tree.leaf].astype(np.int64)
    group = np.where(above > 0, above, tree.parent.size + np.arange(pool.size))
    _, group = np.unique(group, return_inverse=True)
    decode = np.bincount(group, estimates.output)
    own = pool.prompt - tree.inherited
    shared = np.zeros(decode.size)
    shared[group] = tree.inherited  # computed once in each group
    share = decode / (decode + np.bincount(group, own) + shared)
    return np.lexsort((np.arange(pool.size), group, -share[group]))


def plain(request: np.ndarray) -> Order:
    """An order as the step loop takes it, scanned from the front: one unit that weighs nothing."""
    one = np.ones(1)
    return Order(np.ascontiguousarray(request, np.int64), np.zeros(request.size, np.int64), one, one, one, one)


def units_of(
    request: np.ndarray, pool: Pool, tree: Tree, estimates: Estimates, costs: Costs, about: Density = PLAIN
) -> Order:
    """An order cut into units: neighbours that share a prefix are one, which costs no sharing (appendix A.2).

    Parameters:
        request: requests from compute- to memory-intensive, see `Transformed`.
        pool, tree, estimates: all requests and what is known of them.
        costs: what densities count.
        about: whether a request in flight is taken to hold p + d / 2 tokens as printed, or, with `length_biased`, what
            those in flight hold on average, Σ(p d + d^2 / 2) / Σ d.

    The density of a unit counts its shared prefix once; so does its mean prompt, which is what prefill budgets count.
    """
    above = tree.parent[tree.leaf[request]]
    new = np.concatenate([[True], (np.diff(above) != 0) | (above[1:] == 0)])
    unit = np.cumsum(new) - 1
    prompt, output = pool.prompt[request].astype(float), estimates.output[request]
    square = estimates.square[request] if about.length_biased else output**2
    attention = about.pair_weight(costs)
    inherited = tree.inherited[request].astype(float)
    again = np.where(new, 0.0, 1.0)  # the prefix is there when a unit's second request comes
    reads = prompt * output + square / 2

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(unit, values)

    count = total(np.ones(request.size))
    computed = total(prompt + output + attention * prompt**2 - again * (inherited + attention * inherited**2))
    held = total(reads) / total(output) if about.length_biased else total(prompt + output / 2) / count
    return Order(
        np.ascontiguousarray(request, np.int64), unit.astype(np.int64), computed * about.balance(costs) / total(reads),
        held, total(prompt - again * inherited) / count, total(output) / count,
    )  # fmt: skip


def blended(
    transformed: Transformed, pool: Pool, tree: Tree, estimates: Estimates, costs: Costs, about: Density = PLAIN
) -> Order:
    """The transformed tree's order with its units."""
    return units_of(transformed.order, pool, tree, estimates, costs, about)
