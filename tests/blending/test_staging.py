"""The stages of a tree: the five-request example by hand, and what holds of any tree."""

import numpy as np
import pytest
from blending_cases import llama_costs, random_pool
from hypothesis import given
from hypothesis import strategies as st

from workbench.blending.model.branching import Branching, branching_pool
from workbench.blending.model.estimating import estimate
from workbench.blending.model.prompts import pool_of_tokens
from workbench.blending.model.staging import BUILT, MERGED, SORTED, SPLIT, STAGES, falling, staged
from workbench.blending.model.tree import tree_of

COSTS = llama_costs()


def test_the_example_of_figure_5_by_hand():
    """Groups 1-2-3 and 4-5; request 2 moves below the root and pays its own token and the two it shared."""
    pool = pool_of_tokens([[1, 1, 11], [1, 1, 12], [1, 1, 13], [2, 2, 14], [2, 2, 15]], [20, 150, 10, 140, 110])
    tree = tree_of(pool)
    known = estimate(pool, tree, "oracle")
    found = {stage: staged(pool, tree, known, COSTS, stage, 2.0) for stage in STAGES}
    assert {stage: (one.order + 1).tolist() for stage, one in found.items()} == {
        "as built": [1, 2, 3, 4, 5], "estimated": [1, 2, 3, 4, 5], "sorted": [3, 1, 2, 5, 4],
        "split": [3, 1, 5, 4, 2], "merged": [3, 1, 5, 4, 2],
    }  # fmt: skip
    leaf = tree.leaf
    assert found[BUILT].level[leaf].tolist() == [2] * 5
    assert found[SPLIT].level[leaf].tolist() == [2, 1, 2, 2, 2]
    assert found[SPLIT].tokens[leaf].tolist() == [1, 3, 1, 1, 1]
    first, second = tree.parent[leaf[0]], tree.parent[leaf[3]]
    assert [found[SORTED].place[node] for node in (0, first, second)] == [2.0, 1.0, 3.5]
    assert [found[SPLIT].place[node] for node in (0, first, second)] == [2.0, 0.5, 2.5]
    assert found[SPLIT].unit.tolist() == [0, 1, 2, 3, 4]
    assert found[MERGED].unit.tolist() == [0, 0, 1, 1, 2]


@given(st.integers(0, 200), st.integers(0, 8))
def test_what_is_drawn_is_what_is_computed(seed, threshold):
    """Prompt tokens on the edges that are left, and the outputs, are all tokens that sharing does not save."""
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, 30, longest=9, output=400)
    tree = tree_of(pool)
    known = estimate(pool, tree, "subtree", 0.5, rng)
    for stage in STAGES:
        found = staged(pool, tree, known, COSTS, stage, float(threshold))
        there = ~np.isnan(found.place)
        computed = found.tokens[there].sum() + pool.output.sum()
        assert found.sharing == pytest.approx(1 - computed / pool.tokens)
        assert sorted(found.order.tolist()) == list(range(pool.size))
        assert (found.level[found.parent[1:]] == found.level[1:] - 1).all()
        assert np.bincount(found.unit).sum() == pool.size


def test_rank_correlation_by_hand():
    """Of the six pairs of four leaves five fall and one rises; equal ones count for neither."""
    assert falling(np.array([4.0, 2.0, 3.0, 1.0])) == pytest.approx(4 / 6)
    assert falling(np.array([3.0, 2.0, 1.0])) == pytest.approx(1.0)
    assert falling(np.array([1.0, 2.0])) == pytest.approx(-1.0)
    assert falling(np.array([5.0, 5.0])) == 1.0
    assert falling(np.array([2.0, 2.0, 1.0])) == 1.0  # falls as far as it can
    assert falling(np.array([2.0, 1.0, 2.0, 2.0])) == pytest.approx((1 - 2) / 3)


def test_splitting_brings_the_leaves_nearer_to_a_falling_order():
    pool = branching_pool(Branching(3, 2, 10, outliers=0.2), np.random.default_rng(4))
    tree = tree_of(pool)
    known = estimate(pool, tree, "oracle")
    order = [staged(pool, tree, known, COSTS, stage, np.inf).order for stage in (BUILT, SORTED, SPLIT)]
    density = 1 / (pool.prompt + pool.output / 2) * (pool.prompt + pool.output) / pool.output
    built, layered, split = (falling(density[one]) for one in order)
    assert built < layered < split
