"""A job that shares prefixes on a GPU, prompts and decoding in a stream each; how much products and reading disturb.

Skipped where torch finds no GPU. Run with `-s` to read the slopes and times; no speed is asserted.
"""

import numpy as np
import pytest

from workbench.blending.model.planning import steps_of
from workbench.blending.model.small_jobs import ORDERS, Mixture, costs_from, ordered, small_job
from workbench.blending.real.job import COUNTS, SAMPLES, calibrate, run_job
from workbench.blending.real.measuring import measure_overlap
from workbench.blending.real.serving import Model
from workbench.executor.processes import Pool
from workbench.executor.transformer import Shape
from workbench.profiles.measure_gpu import gpu_count

pytestmark = [pytest.mark.torch, pytest.mark.real]
SHAPE = Shape(layers=4, hidden=512, heads=8, kv_heads=8, ffn=1024, vocabulary=512, longest=512)
MIXTURE = Mixture(groups=4, members=4, writers=4, shared=64, own=64, answer=10, prompt=32, least=60, most=90)


@pytest.fixture(scope="module", autouse=True)
def gpu():
    if not gpu_count():
        pytest.skip("torch finds no GPU here")


@pytest.fixture(scope="module")
def pool():
    with Pool(1) as processes:
        yield processes


def test_slopes_are_measured_in_two_streams():
    for row in measure_overlap(5.0):
        print(f"{row.quantity}: {row.median:.2f} ({row.low:.2f} to {row.high:.2f}), {row.how}")
        assert 0 <= row.low <= row.high <= 1
        assert "two streams" in row.how


def test_every_order_says_there_what_each_request_alone_says(pool):
    """Segments lie on the GPU; bit-equal is not asked for, 1e-5 of the largest logit is."""
    model = Model(SHAPE, 0, "plain", "cuda")
    found = calibrate(model, 3, pool=pool)
    assert found.operations.seconds.shape == (len(COUNTS), 3)
    assert found.parts.seconds.shape == (len(SAMPLES), 3)
    for name, one in (("products and reading", found.operations), ("parts of a step", found.parts)):
        fit = one.fit
        print(f"{name}: a = {fit.memory_slope:.2f}, b = {fit.compute_slope:.2f}, error {fit.error:.1%}")
    job = small_job(MIXTURE, SHAPE.vocabulary, np.random.default_rng(1))
    costs, plans = costs_from(found.costs, job, 1200), {}
    for name in ORDERS:
        order, scan = ordered(job, name, costs, np.random.default_rng(2))
        plans[name] = steps_of(job.pool, job.tree, job.estimates, order, costs, scan, batch=128)[0]
    run = run_job(model, job, plans, 1, pool=pool)
    assert run.identity["fault"].to_list() == [""] * len(ORDERS)
    for name, served in run.orders.items():
        alone_s, beside_s = served.step_s.sum(axis=1)
        print(f"{name}: {alone_s:.3f} s one after the other, {beside_s:.3f} s beside each other")
