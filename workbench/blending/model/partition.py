"""Data parallel ranks: the blended order cut into parts of equal work (BlendServe §5.5)."""

import numpy as np

from workbench.blending.kernels.dealing import cut, fill
from workbench.blending.kernels.layout import Order
from workbench.blending.model.costs import Costs
from workbench.blending.model.density import PLAIN, Density
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.ordering import units_of
from workbench.blending.model.prompts import Pool
from workbench.blending.model.tree import Tree
from workbench.records import whole


def partition(
    order: Order, pool: Pool, tree: Tree, estimates: Estimates, costs: Costs, ranks: int, about: Density = PLAIN
) -> list[Order]:
    """The parts of an order that ranks serve, each an order of its own from compute- to memory-intensive.

    Units above the density of all are cut in their order, where a rank computes its share; the others are dealt from
    the right end until a rank reads its share, and one that is too large for what is left waits for the next rank: a
    single video can be a fifth of what a rank reads. What a cut loses is the path from the root to where it was made.

    Parameters:
        order: of the whole pool, see `ordering.units_of`.
        ranks: how many parts, at most one a request.
    """
    whole(ranks, "ranks", 1, order.request.size)
    request = order.request
    above = tree.parent[tree.leaf[request]]
    first = np.concatenate([[True], np.diff(above) != 0])
    output = estimates.output[request]
    square = estimates.square[request] if about.length_biased else output**2
    compute = pool.prompt[request] - np.where(first, 0, tree.inherited[request]) + output
    read = pool.prompt[request] * output + square / 2
    heavy = order.density[order.unit] < compute.sum() * costs.balance / read.sum()
    rank = np.zeros(request.size, np.int64)
    if not heavy.all():
        cut(compute, heavy, np.full(ranks, 1.0), rank)
    share = np.full(ranks, read.sum() / ranks) - np.bincount(rank[~heavy], read[~heavy], ranks)
    fill(read, heavy, share, rank)
    # What the heavy ones compute is known now: the others make up for it.
    wanted = np.full(ranks, compute.sum() / ranks) - np.bincount(rank[heavy], compute[heavy], ranks)
    if not heavy.all() and wanted.min() > 0:
        cut(compute, heavy, wanted, rank)
    return [
        units_of(request[rank == one], pool, tree, estimates, costs, about)
        for one in range(ranks)
        if (rank == one).any()
    ]
