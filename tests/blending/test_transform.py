"""The transformed tree: the five-request example, falling order, budgets kept, minimal outliers, ranks."""

import itertools

import numpy as np
import pytest
from blending_cases import llama_costs, prompts_of, random_pool, trie_edges
from hypothesis import given
from hypothesis import strategies as st

from workbench.blending.kernels.outliers import outliers
from workbench.blending.model.density import Density, request_density
from workbench.blending.model.estimating import estimate
from workbench.blending.model.ordering import ORDERS, order_of, units_of
from workbench.blending.model.partition import partition
from workbench.blending.model.prompts import pool_of_tokens
from workbench.blending.model.synthesis import mix
from workbench.blending.model.transforming import BUDGET, NONE, OUTLIER, transform
from workbench.blending.model.tree import sharing, tree_of

COSTS = llama_costs()


def known(pool, tree):
    return estimate(pool, tree, "oracle")


FIVE = [[1, 1, 11], [1, 1, 12], [1, 1, 13], [2, 2, 14], [2, 2, 15]]


def test_the_example_of_figure_5():
    """Requests 1, 2, 3 share a prefix, 4 and 5 another; 2 has by far the longest output and goes to the right end."""
    pool = pool_of_tokens(FIVE, [20, 150, 10, 140, 110])
    tree = tree_of(pool)
    found = transform(pool, tree, known(pool, tree), COSTS, threshold=2)
    assert (found.order + 1).tolist() == [3, 1, 5, 4, 2]
    assert (found.split + 1).tolist() == [2]
    # Nine prompt tokens on the edges of the tree, and the two that request 2 computes once more.
    assert found.sharing == pytest.approx(1 - (9 + 2 + pool.output.sum()) / pool.tokens)
    kept = transform(pool, tree, known(pool, tree), COSTS, threshold=1)
    assert (kept.order + 1).tolist() == [3, 1, 2, 5, 4]
    assert kept.split.size == 0


def test_who_has_moved_stays_and_others_move_next():
    """Request 2 is so long that its subtree comes last: 5 and 4 move without effect, then 3 and 1 do."""
    pool = pool_of_tokens(FIVE, [20, 5000, 10, 200, 100])
    tree = tree_of(pool)
    found = transform(pool, tree, known(pool, tree), COSTS, threshold=2)
    assert (found.order + 1).tolist() == [3, 1, 5, 4, 2]


def brute_best(leaves):
    """The most leaves that can stay in a falling order, and how many of these may not move."""
    best = (0, 0)
    for size in range(1, len(leaves) + 1):
        for chosen in itertools.combinations(leaves, size):
            if all(one[0] >= other[0] for one, other in itertools.pairwise(chosen)):
                best = max(best, (size, sum(not free for _, free in chosen)))
    return best


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=9))
def test_outliers_are_as_few_as_can_be(leaves):
    values, free = (np.array(column) for column in zip(*leaves, strict=True))
    out = np.empty(values.size, bool)
    outliers(values.astype(float), free, out)
    stay, fixed = brute_best(leaves)
    assert not np.any(out & ~free)
    assert free.sum() - out.sum() == stay - fixed
    kept = values[free & ~out].tolist()
    assert kept == sorted(kept, reverse=True)


def random_case(seed, requests=40):
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, requests, longest=9, output=400)
    tree = tree_of(pool)
    return pool, tree, estimate(pool, tree, "subtree", 0.4, rng)


@given(st.integers(0, 200), st.sampled_from([OUTLIER, BUDGET, NONE]))
def test_every_request_stands_in_the_order_once(seed, split):
    pool, tree, estimates = random_case(seed)
    found = transform(pool, tree, estimates, COSTS, split)
    assert sorted(found.order.tolist()) == list(range(pool.size))


@given(st.integers(0, 200), st.sampled_from([OUTLIER, BUDGET]))
def test_the_search_keeps_the_sharing_it_was_told_to(seed, split):
    pool, tree, estimates = random_case(seed)
    most = sharing(pool, tree)
    for kept in (0.99, 0.7):
        found = transform(pool, tree, estimates, COSTS, split, kept=kept)
        assert kept * most - 1e-12 <= found.sharing <= most + 1e-12


@given(st.integers(0, 200))
def test_without_limit_the_leaves_fall(seed):
    """A threshold that nothing exceeds lets every outlier go: leaf densities then never rise."""
    pool, tree, estimates = random_case(seed)
    for split in (OUTLIER, BUDGET):
        found = transform(pool, tree, estimates, COSTS, split, threshold=1e12)
        if split == BUDGET:
            density = request_density(pool.prompt, estimates.output, COSTS)[found.order]
            assert np.all(np.diff(density) <= 1e-9 * density[:-1])
        assert found.rounds <= pool.size + 1


@given(st.integers(0, 200))
def test_sharing_of_moved_leaves_is_that_of_a_trie_without_them(seed):
    pool, tree, estimates = random_case(seed)
    found = transform(pool, tree, estimates, COSTS, threshold=3)
    prompts = prompts_of(pool)
    moved = set(found.split.tolist())
    stay = trie_edges([prompt for who, prompt in enumerate(prompts) if who not in moved])
    # A moved request computes all its prompt; the prompts of those that stay are shared as in a tree of their own,
    # but a segment that only moved requests went on to use is still one of the tree's.
    alone = sum(len(prompts[who]) for who in moved)
    ours = (1 - found.sharing) * pool.tokens - pool.output.sum()
    assert ours == pytest.approx(stay + alone)


@given(st.integers(0, 200))
def test_sorting_alone_reorders_siblings_only(seed):
    pool, tree, estimates = random_case(seed)
    order = transform(pool, tree, estimates, COSTS, NONE).order
    place = np.empty(pool.size, int)
    place[order] = np.arange(pool.size)
    for node in range(tree.parent.size):
        inside = tree.request[node : tree.last[node]]
        places = np.sort(place[inside[inside >= 0]])
        assert np.all(np.diff(places) == 1)


@pytest.mark.parametrize("name", ORDERS)
def test_orders_are_permutations(name):
    pool, tree, estimates = random_case(1)
    assert sorted(order_of(pool, tree, estimates, name).tolist()) == list(range(pool.size))


def test_groups_by_decode_share():
    prompts = [[1, 1, 5], [2, 2, 5], [1, 1, 6], [2, 2, 6], [9, 9]]
    pool = pool_of_tokens(prompts, [1, 50, 1, 60, 3])
    tree = tree_of(pool)
    assert order_of(pool, tree, known(pool, tree), "prefix-groups").tolist() == [1, 3, 4, 0, 2]
    assert order_of(pool, tree, known(pool, tree), "longest-first").tolist() == [3, 1, 4, 0, 2]


def test_units_by_hand():
    """Three requests of one node in a row are a unit that computes their shared prefix once."""
    prompts = [[1, 1, 5], [1, 1, 6], [1, 1, 7], [9]]
    pool = pool_of_tokens(prompts, [2, 4, 6, 8])
    tree = tree_of(pool)
    order = units_of(np.array([0, 1, 3, 2]), pool, tree, known(pool, tree), COSTS, Density(length_biased=True))
    assert order.unit.tolist() == [0, 0, 1, 2]
    assert order.prompt.tolist() == [(3 + 1) / 2, 1, 3]
    reads = [3 * 2 + 2 + 3 * 4 + 8, 8 + 32, 3 * 6 + 18]
    assert order.held.tolist() == [reads[0] / 6, reads[1] / 8, reads[2] / 6]
    assert order.density == pytest.approx(np.array([4 + 6, 9, 9]) * COSTS.balance / reads)
    printed = units_of(np.array([0, 1, 3, 2]), pool, tree, known(pool, tree), COSTS)
    assert printed.held.tolist() == [3 + 1.5, 1 + 4, 3 + 3]


@given(st.integers(0, 100), st.integers(1, 5))
def test_ranks_share_the_requests(seed, ranks):
    pool, tree, estimates = random_case(seed, 60)
    order = units_of(transform(pool, tree, estimates, COSTS).order, pool, tree, estimates, COSTS)
    parts = partition(order, pool, tree, estimates, COSTS, ranks)
    assert sorted(np.concatenate([part.request for part in parts]).tolist()) == list(range(pool.size))
    place = np.empty(pool.size, int)
    place[order.request] = np.arange(pool.size)
    for part in parts:
        assert np.all(np.diff(place[part.request]) > 0)


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_share_the_work(ranks):
    """Of a mix with a few hundred videos every rank computes and reads its share within 3 %, by true lengths."""
    pool = mix("burstgpt-like", 0.9, 0.35, 200_000, COSTS, np.random.default_rng(5)).pool
    tree = tree_of(pool)
    estimates = known(pool, tree)
    order = units_of(transform(pool, tree, estimates, COSTS).order, pool, tree, estimates, COSTS)
    parts = partition(order, pool, tree, estimates, COSTS, ranks)
    reads = pool.prompt * pool.output + pool.output.astype(float) ** 2 / 2
    for part in parts:
        own = np.unique(tree.parent[tree.leaf[part.request]])
        compute = (pool.prompt - tree.inherited + pool.output)[part.request].sum() + tree.tokens[own].sum()
        whole = tree.edge_tokens + pool.output.sum()
        assert compute * ranks / whole == pytest.approx(1, abs=0.03)
        assert reads[part.request].sum() * ranks / reads.sum() == pytest.approx(1, abs=0.03)
