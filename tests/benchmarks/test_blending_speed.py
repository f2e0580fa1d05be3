"""Prints how fast trees are built and offline runs simulated; run with `pytest -s tests/benchmarks`."""

import time

import numpy as np
import pytest

import workbench as wb
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


CELLS = {"densities": [(0.8,), (1.1,), (1.4,)], "sharings": [(0.05,), (0.45,)]}


@pytest.mark.timeout(600)
def test_a_heat_map(tmp_path):
    """Budget: 15 minutes for the 65 points of Figure 11 in full on 2 cores; six are run, the rest is extrapolated.

    The first pass starts the workers and lets each import and load kernels; the second finds all of it on disk.
    """
    whole = 13 * 5

    def seconds(grid, **more):
        start = time.perf_counter()
        swept = wb.sweep("blendserve/fig11", grid=grid, folder=tmp_path, workers=2, progress=count, **more)
        return time.perf_counter() - start, swept.tables["cells"]

    told = []

    def count(*counts):
        told.append(counts)

    begin_s, _ = seconds({name: values[:1] for name, values in CELLS.items()}, requests="20,000")
    taken_s, table = seconds(CELLS)
    again_s, same = seconds(CELLS)
    a_point_s = max(taken_s - begin_s, 0) / len(table)
    map_s = begin_s + whole * a_point_s
    print(f"\n{len(table)} points in {taken_s:.1f} s, read again in {again_s:.1f} s; a map of {whole}: {map_s:.0f} s")
    assert told[-1] == (6, 6, 6)
    assert table["gain"].to_list() == same["gain"].to_list()
