"""Prints how fast trees are built and offline runs simulated; run with `pytest -s tests/benchmarks`."""

import time

import numpy as np
import pytest

from workbench.blending.model.costs import costs_of
from workbench.blending.model.density import Density
from workbench.blending.model.estimating import estimate
from workbench.blending.model.ordering import blended, order_of, plain
from workbench.blending.model.running import serve
from workbench.blending.model.synthesis import mix
from workbench.blending.model.transforming import transform
from workbench.blending.model.tree import tree_of
from workbench.profiles import accelerator, model

BIASED = Density(length_biased=True)


@pytest.fixture(scope="module")
def pool():
    """400,000 requests like Trace#2, drawn twice so that all kernels are compiled."""
    costs = costs_of(model("llama-3-8b"), accelerator("a100-80gb-sxm"), pool_bytes=60e9)
    for size in (20_000, 400_000):
        found = mix("burstgpt-like", 0.9, 0.35, size, costs, np.random.default_rng(0)).pool
        if size == 20_000:
            _prepared(found, costs)
    return found, costs


def _prepared(pool, costs):
    tree = tree_of(pool)
    known = estimate(pool, tree, rng=np.random.default_rng(1))
    moved = transform(pool, tree, known, costs, about=BIASED)
    order = blended(moved, pool, tree, known, costs, BIASED)
    serve(pool, tree, known, order, costs, "feedback")
    return tree, known, moved, order


def test_tree_built_estimated_sorted_and_split(pool):
    """Budget: 10 s for 400,000 requests."""
    requests, costs = pool
    start = time.perf_counter()
    tree = tree_of(requests)
    known = estimate(requests, tree, rng=np.random.default_rng(1))
    moved = transform(requests, tree, known, costs, about=BIASED)
    seconds = time.perf_counter() - start
    print(f"\ntree of {requests.size:,} requests built, estimated, sorted and split: {seconds:.2f} s")
    assert moved.order.size == requests.size
    assert seconds <= 10


@pytest.mark.parametrize("name", ["dfs", "balance", "blended"])
def test_one_order(pool, name):
    """Budget: 3 s for a run of 400,000 requests."""
    requests, costs = pool
    tree, known, _, order = _prepared(requests, costs)
    scan = "feedback" if name == "blended" else "single"
    if name != "blended":
        order = plain(order_of(requests, tree, known, name))
    start = time.perf_counter()
    run = serve(requests, tree, known, order, costs, scan)
    seconds = time.perf_counter() - start
    print(f"\n{name}: {requests.size:,} requests in {run.steps:,} steps: {seconds:.2f} s")
    assert seconds <= 3
