"""The step loop: a run by hand, what every run conserves, DFS computes every edge once, no run beats the optimum."""

import numpy as np
import pytest
from blending_cases import random_pool, small_costs, trie_edges
from hypothesis import given
from hypothesis import strategies as st

from workbench.blending.kernels.layout import DECODES, HELD, KV_READ, PAIRS, TOKENS
from workbench.blending.model.bounds import bounds
from workbench.blending.model.costs import Engine
from workbench.blending.model.estimating import estimate
from workbench.blending.model.ordering import ORDERS, order_of, plain, units_of
from workbench.blending.model.prompts import pool_of_tokens
from workbench.blending.model.running import serve
from workbench.blending.model.transforming import transform
from workbench.blending.model.tree import sharing, tree_of
from workbench.errors import InputError


def oracle(pool):
    tree = tree_of(pool)
    return tree, estimate(pool, tree, "oracle")


def test_a_run_by_hand():
    """Two requests share two of three prompt tokens; both prompts are computed in step 0, 4 tokens in all."""
    pool = pool_of_tokens([[1, 1, 2], [1, 1, 3]], [2, 1])
    tree, estimates = oracle(pool)
    run = serve(pool, tree, estimates, plain(np.arange(2)), small_costs(100), batch=128)
    assert run.log[:, [TOKENS, KV_READ, PAIRS, HELD, DECODES]].tolist() == [
        [4, 0, 9 + 5, 4, 0],  # squares grow from 0 to 9, and from 4 to 9
        [2, 4 + 4, 0, 4, 2],  # the second leaves with its prompt's last token and its output
        [1, 5, 0, 2, 1],  # the shared tokens stay until the next step
    ]
    assert run.admitted.tolist() == [0, 0]
    assert run.finished.tolist() == [2, 1]
    assert run.computed.tolist() == [3, 1]
    assert run.sharing(pool) == pytest.approx(2 / 9)
    assert run.hit_rate(pool) == pytest.approx(2 / 6)


def test_a_prefix_is_dropped_between_users_unless_it_is_retained():
    """One request fits at a time; a stranger comes between two that share."""
    pool = pool_of_tokens([[1] * 8 + [2], [7] * 9, [1] * 8 + [3]], [4, 4, 4])
    tree, estimates = oracle(pool)
    for retain, again in ((False, 8), (True, 0)):
        run = serve(pool, tree, estimates, plain(np.arange(3)), small_costs(22), batch=128, retain=retain)
        assert run.computed.tolist() == [9, 9, 1 + again]
    tight = serve(pool, tree, estimates, plain(np.arange(3)), small_costs(13), batch=128, retain=True)
    assert tight.computed.tolist() == [9, 9, 9]  # its room was needed


CASE = st.tuples(st.integers(0, 10_000), st.integers(2, 60), st.integers(0, 3), st.sampled_from(["subtree", "oracle"]))


def case(seed, requests, room, way):
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, requests, longest=15, output=20)
    tree = tree_of(pool)
    costs = small_costs(int((pool.prompt + pool.output).max() * (1 + room)))
    return pool, tree, estimate(pool, tree, way, 0.2, rng), costs, rng


@given(CASE, st.booleans(), st.sampled_from(["single", "open", "feedback"]))
def test_every_run_conserves_tokens_and_memory(given_case, retain, scan):
    pool, tree, estimates, costs, rng = case(*given_case)
    if scan == "single":
        order = plain(rng.permutation(pool.size))
    else:
        moved = transform(pool, tree, estimates, costs).order
        order = units_of(moved, pool, tree, estimates, costs)
    run = serve(pool, tree, estimates, order, costs, scan, batch=128, retain=retain)
    assert run.log[:, TOKENS].sum() == run.computed.sum() + pool.output.sum()
    assert run.log[:, KV_READ].sum() == (pool.prompt * pool.output + pool.output * (pool.output + 1) // 2).sum()
    assert run.log[:, DECODES].sum() == pool.output.sum()
    assert run.log[:, HELD].max() <= costs.pool_tokens
    assert run.log[:, TOKENS].max() <= max(128, run.log[:, DECODES].max())
    assert np.all(run.computed <= pool.prompt[run.request])
    assert np.all(run.finished >= run.admitted + pool.output[run.request])
    assert run.computed.sum() >= tree.edge_tokens


def prompt_lists(pool):
    return [pool.symbols[a:b].tolist() for a, b in zip(pool.start[:-1], pool.start[1:], strict=True)]


@given(st.integers(0, 10_000), st.integers(2, 60))
def test_dfs_computes_every_edge_once_in_a_cache_of_one_request(seed, requests):
    """SGLang's theorem: with a cache of the longest request, DFS order computes the edges of the trie and no more.

    All requests are of the cache's size, so they come one after the other.
    """
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, requests, longest=15, output=20)
    pool = pool._replace(output=pool.prompt.max() + 3 - pool.prompt)
    tree, estimates = oracle(pool)
    run = serve(pool, tree, estimates, plain(tree.dfs()), small_costs(pool.prompt.max() + 3), batch=128, retain=True)
    assert run.computed.sum() == trie_edges(prompt_lists(pool))
    assert run.sharing(pool) == pytest.approx(sharing(pool, tree))


@given(st.integers(0, 10_000), st.integers(2, 60))
def test_dfs_computes_every_edge_once_where_memory_lets_everyone_in(seed, requests):
    """No retention is needed then: whoever comes next finds the prefix in use, or used until the step before."""
    rng = np.random.default_rng(seed)
    pool = random_pool(rng, requests, longest=40, output=20)
    tree, estimates = oracle(pool)
    run = serve(pool, tree, estimates, plain(tree.dfs()), small_costs(pool.tokens), batch=128)
    assert run.computed.sum() == trie_edges(prompt_lists(pool))


@given(CASE, st.sampled_from(ORDERS), st.floats(0, 1), st.floats(0, 1))
def test_no_order_beats_the_practical_optimum(given_case, name, memory_slope, compute_slope):
    pool, tree, estimates, costs, rng = case(*given_case)
    engine = Engine(costs=costs, memory_slope=memory_slope, compute_slope=compute_slope)
    run = serve(pool, tree, estimates, plain(order_of(pool, tree, estimates, name, rng)), costs, batch=128, retain=True)
    limit = bounds(pool, tree, engine)
    taken = float(run.seconds(engine).step_s.sum())
    assert taken >= limit.practical_s * (1 - 1e-9)
    assert limit.practical_s >= limit.ideal_s * (1 - 1e-9)
    assert limit.sequential_s >= limit.practical_s * (1 - 1e-9)
    assert run.throughput(pool, engine) == pytest.approx(pool.tokens / taken)


def test_feedback_keeps_the_density_of_all_in_steady_state():
    """Many short and some long requests: in the middle of the run compute over memory is that of the whole."""
    rng = np.random.default_rng(2)
    prompts = [[index + 10] * 30 for index in range(20_000)]
    output = np.concatenate([np.full(19_600, 2), rng.integers(500, 900, 400)])
    pool = pool_of_tokens(prompts, output)
    tree, estimates = oracle(pool)
    costs = small_costs(40_000).model_copy(update={"weight_bytes": 1.0})
    order = units_of(transform(pool, tree, estimates, costs).order, pool, tree, estimates, costs)
    blended = serve(pool, tree, estimates, order, costs, "feedback", batch=1024)
    first = serve(pool, tree, estimates, plain(order.request), costs, batch=1024)

    def spread(run):
        """How far the first half of the work strays from the density of all."""
        tokens, reads = (np.cumsum(run.log[:, column].astype(float)) for column in (TOKENS, KV_READ))
        half = np.searchsorted(tokens + reads * costs.kv_token_s / costs.token_s, 0.5 * (tokens[-1] + reads[-1] / 4))
        return tokens[half] / reads[half] / (tokens[-1] / reads[-1])

    assert spread(blended) == pytest.approx(1.0, abs=0.25)
    assert spread(first) > 1.5


def test_what_cannot_be_served_is_refused():
    pool = pool_of_tokens([[1, 2, 3]], [7])
    tree, estimates = oracle(pool)
    with pytest.raises(InputError, match="request 0 needs 10 KV tokens and the pool holds 9"):
        serve(pool, tree, estimates, plain(np.arange(1)), small_costs(9))
    with pytest.raises(InputError, match="give a multiple of 128 tokens"):
        serve(pool, tree, estimates, plain(np.arange(1)), small_costs(90), batch=100)
    pool = pool_of_tokens([[1, 2, 3], [1, 4]], [7, 2])
    tree, estimates = oracle(pool)

    def run(order, **given):
        return serve(pool, tree, estimates, plain(np.array(order, np.int64)), small_costs(90), **given)

    for order, words in (
        ([0, 2], "names request 2 of 2"), ([-1, 0], "names request -1 of 2"), ([1, 1], "names request 1 twice"),
        ([], "is empty"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"'order': {words}"):
            run(order)
    for name, value in (("cap", np.nan), ("cap", 0), ("cap", 1.5), ("patience", -1.0), ("patience", np.nan)):
        with pytest.raises(InputError, match=f"'{name}': is"):
            run([0, 1], **{name: value})
    assert run([1]).request.tolist() == [1]


@pytest.mark.parametrize(("name", "value"), [("kept", 2), ("kept", np.nan), ("threshold", -1), ("threshold", np.nan)])
def test_splits_that_cannot_be(name, value):
    pool = pool_of_tokens([[1, 2], [1, 3]], [5, 6])
    tree, estimates = oracle(pool)
    with pytest.raises(InputError, match=f"'{name}': is"):
        transform(pool, tree, estimates, small_costs(90), **{name: value})
