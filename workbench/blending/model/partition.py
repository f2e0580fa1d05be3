"""Data parallel ranks: the blended order cut into parts of equal work (BlendServe §5.5)."""

import numpy as np

from workbench.blending.kernels.emission import emit
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

    Both ends of the order take turns so that what was emitted keeps the density of all; a part is closed when it holds
    its share of the work, compute and memory time together. What a cut loses is the path from the root to where each
    end stood.

    Parameters:
        order: of the whole pool, see `ordering.units_of`.
        ranks: how many parts.
    """
    whole(ranks, "ranks", 1, order.request.size)
    request = order.request
    above = tree.parent[tree.leaf[request]]
    first = np.concatenate([[True], np.diff(above) != 0])
    prompt = pool.prompt[request] - np.where(first, 0, tree.inherited[request])
    output = estimates.output[request]
    square = estimates.square[request] if about.length_biased else output**2
    compute, read = prompt + output, pool.prompt[request] * output + square / 2
    places = np.empty(request.size, np.int64)
    emit(compute, read, places)
    work = np.cumsum((compute * costs.token_s + read * costs.kv_token_s)[places])
    rank = np.minimum((work - 1e-12 * work[-1]) / work[-1] * ranks, ranks - 1).astype(np.int64)
    return [
        units_of(request[np.sort(places[rank == one])], pool, tree, estimates, costs, about) for one in range(ranks)
    ]
