"""The radix tree against a trie written out, its sums against subsets served alone, estimates by hand."""

import numpy as np
import polars as pl
import pytest
from blending_cases import llama_costs, prompts_of, random_pool, trie_edges
from hypothesis import given
from hypothesis import strategies as st

from workbench.blending.kernels.lookup import index_tree, longest_match
from workbench.blending.model.density import Density
from workbench.blending.model.estimating import estimate
from workbench.blending.model.prompts import checked_pool, pool_of_requests, pool_of_tokens
from workbench.blending.model.tree import sharing, tree_of, weigh
from workbench.errors import InputError

PROMPTS = st.lists(st.lists(st.integers(0, 2), max_size=7), min_size=1, max_size=25)


def pool_from(prompts):
    return pool_of_tokens(prompts, [1 + index % 5 for index in range(len(prompts))])


@given(PROMPTS)
def test_edges_are_the_distinct_prefixes(prompts):
    pool = pool_from(prompts)
    tree = tree_of(pool)
    assert tree.edge_tokens == trie_edges(prompts)
    saved = sum(map(len, prompts)) - trie_edges(prompts)
    assert sharing(pool, tree) == pytest.approx(saved / pool.tokens)


@given(PROMPTS)
def test_the_tree_is_in_order(prompts):
    pool = pool_from(prompts)
    tree = tree_of(pool)
    nodes = np.arange(1, tree.parent.size)
    assert np.all(tree.parent[1:] < nodes)
    assert np.all(tree.last[tree.parent[1:]] >= tree.last[1:])
    assert sorted(tree.dfs().tolist()) == list(range(pool.size))
    assert tree.depth[tree.leaf].tolist() == [len(prompt) for prompt in prompts]
    first = [min(tree.request[n:end][tree.request[n:end] >= 0]) for n, end in enumerate(tree.last)]
    for node in range(tree.parent.size):
        children = np.flatnonzero(tree.parent == node)
        assert [first[child] for child in children] == sorted(first[child] for child in children)
        assert not children.size or len(children) > 1 or node == 0
        heads = [pool.symbols[tree.begin[child]] for child in children if tree.tokens[child]]
        assert len(set(heads)) == len(heads)


@given(PROMPTS)
def test_what_a_request_shares_is_its_longest_prefix_in_common(prompts):
    tree = tree_of(pool_from(prompts))
    for index, prompt in enumerate(prompts):
        others = [other for place, other in enumerate(prompts) if place != index]
        common = [sum(1 for k in range(len(prompt)) if prompt[: k + 1] == other[: k + 1]) for other in others]
        assert tree.inherited[index] == max(common, default=0)


@given(PROMPTS, st.lists(st.integers(0, 2), max_size=9))
def test_a_lookup_finds_the_deepest_node_on_a_prompts_way(prompts, asked):
    pool = pool_from(prompts)
    tree = tree_of(pool)
    table = index_tree(pool.symbols, tree.parent, tree.begin, tree.length)
    symbols = np.array([*pool.symbols, *asked], np.int64)
    found = longest_match(symbols, pool.symbols.size, symbols.size, tree.begin, tree.length, *table)
    paths = {
        node: prompts[min(who for who in tree.request[node : tree.last[node]] if who >= 0)][: tree.depth[node]]
        for node in range(tree.parent.size)
    }
    reached = [tree.depth[node] for node, path in paths.items() if asked[: len(path)] == path]
    assert tree.depth[found] == max(reached)
    assert paths[found] == asked[: tree.depth[found]]


@given(PROMPTS, st.booleans(), st.booleans())
def test_a_node_weighs_what_its_requests_weigh_when_served_alone(prompts, attention, biased):
    pool, costs = pool_from(prompts), llama_costs()
    tree = tree_of(pool)
    output = np.array([1.5 + index % 3 for index in range(pool.size)])
    square = output**2 + 0.25
    about = Density(attention=attention, length_biased=biased)
    weights = weigh(pool, tree.parent, tree, output, square, costs, about)
    for node in range(tree.parent.size):
        inside = [who for who in tree.request[node : tree.last[node]] if who >= 0]
        distinct = {tuple(prompts[who][:end]) for who in inside for end in range(1, len(prompts[who]) + 1)}
        extra = costs.attention if attention else 0.0
        compute = sum(1 + extra * (len(prefix) ** 2 - (len(prefix) - 1) ** 2) for prefix in distinct)
        compute += sum(output[who] for who in inside)
        reads = sum(
            len(prompts[who]) * output[who] + (square[who] if biased else output[who] ** 2) / 2 for who in inside
        )
        assert weights.computed[node] == pytest.approx(compute)
        assert weights.read[node] == pytest.approx(reads)
        assert weights.density[node] == pytest.approx(compute * costs.balance / reads)


def test_tokens_and_hashes_of_blocks_build_the_same_tree():
    rng = np.random.default_rng(5)
    block = 4
    prompts = [rng.integers(2, size=block * rng.integers(1, 4)).tolist() for _ in range(40)]
    names: dict[tuple[int, ...], int] = {}
    hashes = [
        [names.setdefault(tuple(prompt[: end + block]), len(names)) for end in range(0, len(prompt), block)]
        for prompt in prompts
    ]
    table = pl.DataFrame(
        {"prompt_tokens": [len(p) for p in prompts], "output_tokens": [3] * 40, "prefix_hashes": hashes}
    )
    by_hash = tree_of(pool_of_requests(table, block))
    by_token = tree_of(pool_of_tokens(prompts, [3] * 40))
    whole_blocks = trie_edges([[tuple(p[e : e + block]) for e in range(0, len(p), block)] for p in prompts])
    assert by_hash.edge_tokens == whole_blocks * block
    assert by_token.edge_tokens <= by_hash.edge_tokens


def test_the_last_hash_covers_what_is_left():
    table = pl.DataFrame({"prompt_tokens": [5, 8], "output_tokens": [1, 1], "prefix_hashes": [[1, 2], [1, 3]]})
    pool = pool_of_requests(table, 4)
    assert pool.prompt.tolist() == [5, 8]
    assert tree_of(pool).edge_tokens == 4 + 1 + 4


def requests_of(prompts, **columns):
    return pool_of_requests(pl.DataFrame({"prompt_tokens": prompts, "output_tokens": [1, 1], **columns}), 4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pool_of_tokens([[1]], [0]), "whole number of 1 or more"),
        (lambda: pool_of_tokens([[1]], [1, 2]), "has 2 values for 1 prompts"),
        (lambda: pool_of_tokens([[1], [1.5]], [1, 1]), "row 2, field 'prompts': is no list of token ids"),
        (lambda: pool_of_tokens([["a"]], [1]), "no list of token ids"),
        (lambda: pool_of_tokens([[2**70]], [1]), "no list of token ids"),
        (lambda: pool_of_tokens([[[1]]], [1]), "no list of token ids"),
        (lambda: pool_of_requests(pl.DataFrame({"prompt_tokens": [9]}), 4), "'output_tokens': is no column"),
        (lambda: requests_of([3, None]), "row 2, field 'prompt_tokens': is empty"),
        (lambda: requests_of([3, -5]), "row 2, field 'prompt_tokens': is -5"),
        (lambda: requests_of([3.0, 4.5]), "'prompt_tokens': is of type Float64"),
        (lambda: requests_of(["a", "b"]), "'prompt_tokens': is of type String"),
        (lambda: requests_of([3, 5], prefix_hashes=[[1], [1, None]]), "row 2, field 'prefix_hashes': holds an empty"),
        (lambda: pool_of_tokens([], []), "an offline pool needs a request"),
        (
            lambda: pool_of_requests(
                pl.DataFrame({"prompt_tokens": [9], "output_tokens": [1], "prefix_hashes": [[1]]}), 4
            ),
            "give one for every 4 tokens",
        ),
    ],
)
def test_pools_that_cannot_be(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_estimates_by_hand():
    """Sampled: one of two siblings, one of another group, none of a third; a video's length is known."""
    prompts = [[1, 1, 5], [1, 1, 6], [1, 2, 5], [1, 2, 6], [3, 3], [3, 4], [9]]
    pool = pool_of_tokens(prompts, [10, 50, 20, 50, 50, 50, 1000])
    pool = pool._replace(known=np.arange(7) == 6)
    tree = tree_of(pool)

    class Chosen:
        def random(self, size):
            return np.where(np.isin(np.arange(size), [0, 2]), 0.0, 1.0)

    found = estimate(pool, tree, "subtree", 0.5, Chosen())
    assert found.output.tolist() == [10, 10, 20, 20, 15, 15, 1000]
    assert found.square.tolist() == [100, 100, 400, 400, 250, 250, 1e6]
    assert found.sampled.tolist() == [True, False, True, False, False, False, False]
    assert estimate(pool, tree, "oracle").output.tolist() == pool.output.tolist()
    tagged = estimate(
        pool._replace(source=np.array([0, 0, 1, 1, 2, 2, 2]), sources=("a", "b", "c")), tree, "tag", 0.5, Chosen()
    )
    assert tagged.output.tolist() == [10, 10, 20, 20, 15, 15, 1000]


@given(st.integers(0, 50))
def test_somebody_is_sampled_however_small_the_share(seed):
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, 10)
    found = estimate(pool, tree_of(pool), "subtree", 1e-9, rng)
    assert found.sampled.sum() == 1
    assert np.all(found.output == pool.output[found.sampled][0])


def test_bad_shares_are_refused():
    pool = pool_of_tokens([[1]], [1])
    with pytest.raises(InputError, match="share above 0"):
        estimate(pool, tree_of(pool), "subtree", 0.0)


def test_the_tree_of_equal_and_nested_prompts():
    pool = checked_pool(np.array([7, 7, 8, 7]), np.array([0, 1, 3, 4, 4]), np.array([10, 10, 5, 10]), [1, 1, 1, 1])
    tree = tree_of(pool)
    assert prompts_of(pool) == [[7], [7, 8], [7], []]
    assert tree.edge_tokens == 15
    assert tree.inherited.tolist() == [10, 10, 10, 0]
