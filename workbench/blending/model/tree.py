"""The prefix tree of a pool: what is shared, how much sharing can save, what each part of it weighs."""

from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.radix import grow_tree, preorder, renumbered
from workbench.blending.kernels.sums import READ, computed_of, subtree_sums
from workbench.blending.model.costs import Costs
from workbench.blending.model.density import PLAIN, Density
from workbench.blending.model.prompts import Pool


class Tree(NamedTuple):
    """A radix tree; node 0 is the root, parents come before children, siblings by the first request below them.

    Attributes:
        parent: int32[v], -1 for the root. last: int32[v], one past the last node below.
        tokens: int64[v], of the node's own segment. depth: int64[v], from the root to its end.
        request: int32[v], whose leaf it is, -1 for inner nodes.
        leaf: int32[n], the leaf of each request.
        begin, length: int64[v], where the node's segment begins among the pool's symbols, and how many it has.
    """

    parent: np.ndarray
    last: np.ndarray
    tokens: np.ndarray
    depth: np.ndarray
    request: np.ndarray
    leaf: np.ndarray
    begin: np.ndarray
    length: np.ndarray

    @property
    def edge_tokens(self) -> int:
        """Tokens on all edges: the prompt tokens that must be computed at least."""
        return int(self.tokens.sum())

    @property
    def inherited(self) -> np.ndarray:
        """Tokens above each request's own leaf, int64[n]: what it shares with others."""
        return self.depth[self.parent[self.leaf]]

    def dfs(self) -> np.ndarray:
        """The requests in the order of a walk down the tree, which computes every shared segment once."""
        return self.request[self.request >= 0].astype(np.int64)


def tree_of(pool: Pool) -> Tree:
    """Build the prefix tree of a pool."""
    most = 2 * pool.size + 1
    parent, request = np.empty(most, np.int32), np.empty(most, np.int32)
    begin, length = np.empty(most, np.int64), np.empty(most, np.int64)
    count = grow_tree(pool.symbols, pool.start, parent, begin, length, request)
    number, last = np.empty(count, np.int32), np.empty(count, np.int32)
    preorder(parent, request, count, pool.size, number, last)
    before = np.concatenate([[0], np.cumsum(pool.symbol_tokens)]).astype(np.int64)
    out_parent, out_request = np.empty(count, np.int32), np.empty(count, np.int32)
    tokens, depth = np.empty(count, np.int64), np.empty(count, np.int64)
    renumbered(number, parent, begin, length, request, before, out_parent, tokens, depth, out_request)
    leaf = np.empty(pool.size, np.int32)
    inner = out_request >= 0
    leaf[out_request[inner]] = np.flatnonzero(inner)
    starts, lengths = np.empty(count, np.int64), np.empty(count, np.int64)
    starts[number], lengths[number] = begin[:count], length[:count]
    return Tree(out_parent, last, tokens, depth, out_request, leaf, starts, lengths)


def sharing(pool: Pool, tree: Tree) -> float:
    """The largest sharing ratio, s_o: tokens that prefix hits can save, over all prompt and output tokens."""
    return 1.0 - (tree.edge_tokens + float(pool.output.sum())) / pool.tokens


class Weights(NamedTuple):
    """What the requests below each node weigh by estimated lengths, in tokens (float64[v]).

    Attributes:
        computed: tokens they compute if they run alone, shared ones once. read: KV tokens they read.
        sums: float64[v, 6], see `kernels.sums`.
        density: compute over memory time.
    """

    computed: np.ndarray
    read: np.ndarray
    sums: np.ndarray
    density: np.ndarray


def weigh(
    pool: Pool, parent: np.ndarray, tree: Tree, estimate, square, costs: Costs, about: Density = PLAIN
) -> Weights:
    """Weigh every node.

    Parameters:
        parent: the tree's, or another one in which some nodes hang elsewhere, parents still before children.
        estimate, square: float64[n], output tokens and their squares as they are estimated.
        costs: give the balance of arithmetic and reading.
        about: what counts; without `length_biased` squares of the estimates are taken.
    """
    squares = square if about.length_biased else estimate**2
    attention = about.pair_weight(costs)
    sums, computed = np.empty((parent.size, 6)), np.empty(parent.size)
    subtree_sums(parent, tree.depth, tree.request, pool.prompt, estimate, squares, attention, sums)
    computed_of(parent, tree.depth, sums, attention, computed)
    read = sums[:, READ].copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        density = np.where(read > 0, computed * about.balance(costs) / read, 0.0)
    return Weights(computed, read, sums, density)
