"""The compiled step loop and its SimPy twin end the same, bit for bit."""

import numpy as np
import pytest
from blending_cases import random_pool, small_costs

from workbench.blending.kernels.layout import TOKENS
from workbench.blending.model.costs import Engine
from workbench.blending.model.density import Density
from workbench.blending.model.estimating import estimate
from workbench.blending.model.ordering import ORDERS, order_of, plain, units_of
from workbench.blending.model.prompts import pool_of_tokens
from workbench.blending.model.running import serve
from workbench.blending.model.transforming import transform
from workbench.blending.model.tree import tree_of
from workbench.blending.simulated import simulate_serving


def same(pool, tree, estimates, order, costs, engine, scan, **options):
    run = serve(pool, tree, estimates, order, costs, scan, **options)
    twin = simulate_serving(pool, tree, estimates, order, costs, engine, scan, **options)
    for name in ("log", "admitted", "finished", "computed"):
        np.testing.assert_array_equal(getattr(run, name), getattr(twin.run, name), err_msg=name)
    assert run.swaps == twin.run.swaps
    np.testing.assert_array_equal(run.finish_s(engine), twin.finish_s)
    return run


@pytest.mark.parametrize("seed", range(12))
def test_both_loops_end_the_same(seed):
    rng = np.random.default_rng(seed)
    requests = int(rng.integers(5, 120))
    pool = random_pool(rng, requests, longest=int(rng.integers(3, 60)), output=int(rng.integers(4, 60)))
    largest = int((pool.prompt + pool.output).max())
    costs = small_costs(largest + int(rng.integers(0, 6 * largest)))
    engine = Engine(
        costs=costs.model_copy(update={"network_s_per_token": float(rng.random()) * 1e-3}), memory_slope=rng.random(),
        compute_slope=rng.random(), network_hidden=bool(seed % 2), prefill_attention=bool(seed % 3),
    )  # fmt: skip
    tree = tree_of(pool)
    estimates = estimate(pool, tree, ("subtree", "tag", "oracle")[seed % 3], 0.2, rng)
    options = {"batch": 128 * int(rng.integers(1, 3)), "retain": bool(seed % 4 == 1)}
    for name in ORDERS:
        order = plain(order_of(pool, tree, estimates, name, rng))
        same(pool, tree, estimates, order, costs, engine, "single", **options)
    about = Density(length_biased=bool(seed % 2))
    moved = transform(pool, tree, estimates, costs, ("outlier", "budget")[seed % 2], about)
    order = units_of(moved.order, pool, tree, estimates, costs, about)
    for scan in ("open", "feedback"):
        for patience in (0.0, 1.0, 3.0):
            same(pool, tree, estimates, order, costs, engine, scan, patience=patience, **options)


def test_the_cases_swap_and_blend():
    """The scenario above is no test unless requests are swapped out, some for long, and batches follow the reads."""
    rng = np.random.default_rng(3)
    pool = random_pool(rng, 150, longest=20, output=80)
    costs = small_costs(int((pool.prompt + pool.output).max()) + 60)
    tree = tree_of(pool)
    estimates = estimate(pool, tree, "subtree", 0.05, rng)
    engine = Engine(costs=costs)
    order = units_of(np.argsort(estimates.output, kind="stable"), pool, tree, estimates, costs)
    assert same(pool, tree, estimates, plain(tree.dfs()), costs, engine, "single").swaps > 10
    assert same(pool, tree, estimates, order, costs, engine, "open", cap=0.9).swaps > 10
    blended = same(pool, tree, estimates, order, costs, engine, "feedback", batch=512, patience=1.0)
    assert len(blended.log) > 50


@pytest.mark.parametrize("scan", ["single", "open", "feedback"])
def test_empty_prompts_are_served(scan):
    """Nothing earns them credit; admitted in step 0, the longer of both decodes in steps 1 to 5."""
    pool = pool_of_tokens([[], []], [5, 3])
    tree, costs = tree_of(pool), small_costs(30)
    estimates = estimate(pool, tree, "oracle")
    order = units_of(np.arange(2), pool, tree, estimates, costs)
    run = same(pool, tree, estimates, order, costs, Engine(costs=costs), scan)
    assert (run.steps, run.log[:, TOKENS].tolist()) == (6, [0, 2, 2, 2, 1, 1])
