"""Small branching pools: how many nodes and tokens their trees have, by hand."""

import numpy as np
import pytest

from workbench.blending.model.branching import Branching, branching_pool
from workbench.blending.model.tree import tree_of
from workbench.errors import InputError


@pytest.mark.parametrize(("levels", "branches", "members"), [(1, 4, 3), (2, 3, 2), (3, 2, 5)])
def test_the_tree_has_the_nodes_that_were_asked_for(levels, branches, members):
    """A root, branches + branches^2 + ... shared segments, a leaf for each request."""
    pool = branching_pool(Branching(levels, branches, members), np.random.default_rng(0))
    tree = tree_of(pool)
    inner = sum(branches**level for level in range(1, levels + 1))
    assert pool.size == members * branches**levels
    assert tree.parent.size == 1 + inner + pool.size
    shared = tree.tokens[(tree.request < 0) & (tree.parent >= 0)]
    assert shared.size == inner
    assert shared.min() >= 40
    assert shared.max() <= 360
    assert set(tree.tokens[tree.leaf]) == {60}


def test_outliers_write_longer_by_the_factor():
    same = {"levels": 1, "branches": 1, "members": 4_000}
    usual = branching_pool(Branching(**same, outliers=0.0), np.random.default_rng(3)).output
    mixed = branching_pool(Branching(**same, outliers=0.1, long=20.0), np.random.default_rng(3)).output
    longer = mixed > 2 * usual
    assert longer.mean() == pytest.approx(0.1, abs=0.02)
    assert mixed[longer] == pytest.approx(20 * usual[longer], rel=0.05)
    assert (mixed[~longer] == usual[~longer]).all()


@pytest.mark.parametrize(("wrong", "words"), [({"levels": 0}, "levels"), ({"outliers": 1.5}, "outliers")])
def test_shapes_that_cannot_be(wrong, words):
    with pytest.raises(InputError, match=words):
        branching_pool(Branching(1, 2, 2)._replace(**wrong), np.random.default_rng(0))
