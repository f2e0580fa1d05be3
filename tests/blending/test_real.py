"""A small transformer that shares prefixes: what it computes, what it says, what faults it notices; fits by hand."""

import threading
import time
from contextlib import contextmanager
from importlib.util import find_spec

import numpy as np
import pytest

from workbench.blending.model.fitting import PartCosts, fit_parts, fit_slopes, run_seconds
from workbench.blending.model.planning import steps_of
from workbench.blending.model.prompts import pool_of_tokens
from workbench.blending.model.running import serve
from workbench.blending.model.small_jobs import BLEND, ORDERS, Mixture, SmallJob, costs_from, ordered, small_job
from workbench.blending.model.steps import Chunk
from workbench.blending.policy import overlapped_s
from workbench.errors import InputError
from workbench.executor.processes import Pool
from workbench.executor.transformer.shape import Shape

BATCH = 128
PARTS = PartCosts(token_s=40e-6, pair_s=2e-8, prompts_s=1e-3, decode_s=200e-6, read_s=1e-6, decodes_s=4e-4)
MIXTURE = Mixture(groups=3, members=4, writers=3, shared=40, own=30, answer=10, prompt=20, least=30, most=50)
SHAPE = Shape(layers=2, hidden=64, heads=4, kv_heads=2, ffn=96, vocabulary=128, longest=128)


def plans_of(job: SmallJob, pool_tokens: int):
    """The steps of every order, and the run that the compiled loop makes of it."""
    costs, found = costs_from(PARTS, job, pool_tokens), {}
    for name in ORDERS:
        order, scan = ordered(job, name, costs, np.random.default_rng(2))
        given = job.pool, job.tree, job.estimates, order, costs, scan
        found[name] = steps_of(*given, batch=BATCH)[0], serve(*given, batch=BATCH)
    return found


@pytest.fixture(scope="module")
def job():
    return small_job(MIXTURE, SHAPE.vocabulary, np.random.default_rng(1))


@pytest.fixture(scope="module")
def plans(job):
    """In a pool so small that requests are swapped out too."""
    return plans_of(job, 240)


def test_steps_hold_what_the_compiled_loop_counts(job, plans):
    assert plans["prefix-groups"][1].swaps
    for steps, run in plans.values():
        rows = [[step.prompt_tokens + len(step.decodes), step.read, step.pairs, len(step.decodes)] for step in steps]
        np.testing.assert_array_equal(rows, run.log[:, [0, 1, 2, 4]])
        decodes = np.bincount([who for step in steps for who in step.decodes])
        np.testing.assert_array_equal(decodes, job.pool.output)


def test_down_the_tree_computes_every_edge_once(job, plans):
    """12 requests share 3 prefixes of 40 tokens, 3 share nothing: by hand 3 x 40 + 12 x 30 + 3 x 20."""
    assert job.tree.edge_tokens == 3 * 40 + 12 * 30 + 3 * 20
    steps, _ = plans["dfs"]
    assert sum(step.prompt_tokens for step in steps) == job.tree.edge_tokens


def test_costs_of_parts_are_found_again():
    rng = np.random.default_rng(3)
    tokens, decodes = rng.integers(50, 300, 12), rng.integers(1, 20, 12)
    pairs, read = tokens * rng.integers(100, 600, 12), decodes * rng.integers(50, 400, 12)
    found = fit_parts(
        tokens, pairs, PARTS.compute_s(tokens, pairs), decodes, read, PARTS.memory_s(decodes, read)
    )  # fmt: skip
    assert found == pytest.approx(PARTS)


@pytest.mark.parametrize("slopes", [(0.0, 0.0), (0.2, 0.45), (1.0, 1.0), (0.5, 0.33)])
def test_slopes_are_found_again(slopes):
    compute, memory = (grid.ravel() for grid in np.meshgrid([1.0, 2.0, 4.0, 8.0], [0.5, 1.5, 5.0, 9.0]))
    together = overlapped_s(compute, memory, *slopes)
    found = fit_slopes(compute, memory, together)
    assert (found.memory_slope, found.compute_slope) == pytest.approx(slopes)
    assert found.error < 1e-12
    assert found.hidden == pytest.approx((compute + memory - together).sum() / np.minimum(compute, memory).sum())


def test_slopes_need_readings_to_judge_them():
    with pytest.raises(InputError, match="at least 4"):
        fit_slopes([1.0, 2.0], [1.0, 2.0], [1.0, 2.0])
    fine = [1.0, 2.0, 3.0, 4.0]
    for reading in (np.nan, 0.0, -1.0):
        with pytest.raises(InputError, match="'together_s': holds"):
            fit_slopes(fine, fine, [reading, *fine[1:]])
    with pytest.raises(InputError, match="'memory_s': holds 3 readings for 4"):
        fit_slopes(fine, fine[:3], fine)


def test_seconds_of_a_run_by_hand():
    """A step of 128 tokens, of which 8 decode and read 1,000 KV tokens: 6 ms of compute, 3 ms of memory; then one of
    8 decodes alone, and one of prompts alone.
    """
    log = np.array([[128, 1000, 10_000, 0, 8], [8, 1000, 0, 0, 8], [120, 0, 10_000, 0, 0]])
    assert run_seconds(log[:1], PARTS, 0.5, 0.25) == pytest.approx(6e-3 + 0.5 * 3e-3)
    assert run_seconds(log, PARTS, 1.0, 1.0) == pytest.approx(9e-3 + 3e-3 + 6e-3)


@pytest.fixture(scope="module")
def pool():
    with Pool(1) as processes:
        yield processes


@pytest.fixture(scope="module")
def here(job, plans):
    """A stage in this process and the job of the blended order, for tests that disturb a run."""
    import torch

    from workbench.blending.real.job import as_told
    from workbench.blending.real.serving import Model, loaded

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield loaded(Model(SHAPE, 0)), as_told(job, plans[BLEND][0])
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def right(here):
    """What each request says alone."""
    from workbench.blending.real.tasks import alone

    return alone(*here)


@pytest.mark.torch
@pytest.mark.real
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it")
class TestServing:
    @pytest.mark.parametrize("arithmetic", ["invariant", "plain"])
    def test_every_order_says_what_each_request_alone_says(self, pool, job, plans, arithmetic):
        """Bit for bit in invariant arithmetic where the machine keeps bits, within 1e-5 of the largest logit else."""
        from workbench.blending.real.job import run_job
        from workbench.blending.real.serving import Model

        run = run_job(
            Model(SHAPE, 0, arithmetic), job, {name: steps for name, (steps, _) in plans.items()}, 1, pool=pool
        )
        assert run.identity["fault"].to_list() == [""] * len(ORDERS)
        assert run.identity["distinct"].min() >= 8
        assert run.identity["tokens"].to_list() == [int((job.pool.output + 1).sum())] * len(ORDERS)
        for name, served in run.orders.items():
            assert served.computed == plans[name][1].computed.sum()
            assert served.step_s.shape == (2, plans[name][1].steps)
            assert (served.step_s > 0).all()

    def test_the_undisturbed_run_has_no_fault(self, here, right):
        from workbench.blending.real.serving import serve_job
        from workbench.blending.real.tasks import identity_of

        assert identity_of(here[0], right, [serve_job(*here, True)])["fault"] == ""

    @pytest.mark.parametrize("what", ["swapped", "lost", "rounded"])
    def test_planted_faults_are_noticed(self, here, right, what, monkeypatch):
        """Two shared segments swapped, one that lost its keys and values, one rounded to bf16."""
        import torch

        from workbench.blending.real import serving
        from workbench.blending.real.tasks import identity_of

        done, opened = [], serving._Running.open

        def disturbed(running, step):
            opened(running, step)
            whole = [part for part in running.store.there.values() if min(part.length) == part.capacity]
            if done or len(whole) < 2:
                return
            done.append(step)
            for layer in range(SHAPE.layers):
                one, other = whole[0].rows[layer], whole[1].rows[layer]
                if what == "swapped":
                    whole[0].rows[layer], whole[1].rows[layer] = other, one
                elif what == "lost":
                    one.zero_()
                else:
                    one.copy_(one.to(torch.bfloat16))

        monkeypatch.setattr(serving._Running, "open", disturbed)
        served = serving.serve_job(*here, True)
        assert done, "no step had two whole segments"
        assert "more than 1e-05" in identity_of(here[0], right, [served])["fault"]

    def test_a_step_before_its_prefix_is_refused(self, here):
        from workbench.blending.real.segments import NotThere
        from workbench.blending.real.serving import serve_job

        stage, job = here
        first = job.steps[0].prompts[0]
        late = job.steps[0]._replace(prompts=(Chunk(first.who, 1, first.count - 1),))
        with pytest.raises(NotThere, match="goes on at token 1 and finds 0 tokens"):
            serve_job(stage, job._replace(steps=(late,)), False)

    def test_a_prompt_that_begins_another_is_refused(self, pool):
        from workbench.blending.model.estimating import estimate
        from workbench.blending.model.tree import tree_of
        from workbench.blending.real.job import run_job
        from workbench.blending.real.serving import Model

        prompts = ((1, 2), (1, 2, 3))
        two = pool_of_tokens(prompts, [1, 1])
        tree = tree_of(two)
        nested = SmallJob(prompts, ((1,), (1,)), two, tree, estimate(two, tree, "oracle"))
        with pytest.raises(InputError, match="is the beginning of another"):
            run_job(Model(SHAPE, 0), nested, {}, 1, pool=pool)

    def test_overlap_is_measured_and_fitted(self, pool):
        """What must hold on a busy machine too: both together take about as long as the longer part, or longer."""
        from workbench.blending.real.job import COUNTS, SAMPLES, calibrate
        from workbench.blending.real.serving import Model

        found = calibrate(Model(SHAPE.model_copy(update={"longest": 512}), 0), 3, pool=pool)
        for overlap, count in ((found.operations, len(COUNTS)), (found.parts, len(SAMPLES))):
            assert overlap.seconds.shape == (count, 3)
            assert (overlap.seconds > 0).all()
            longer = overlap.seconds[:, :2].max(axis=1)
            assert np.median(overlap.seconds[:, 2] / longer) > 0.7
            assert 0 <= overlap.fit.memory_slope <= 1
            assert 0 <= overlap.fit.compute_slope <= 1
        assert found.costs.token_s > 0


def test_on_a_gpu_each_kind_of_work_has_a_stream_of_its_own(monkeypatch):
    """With stand-ins for torch's streams: who works where, and that time ends when the stream is done."""
    torch = pytest.importorskip("torch")
    from workbench.blending.real.serving import Beside

    here, told = threading.local(), []

    class Stream:
        def __init__(self, device):
            self.device = device

        def synchronize(self):
            time.sleep(0.02)
            told.append(("done", self))

    @contextmanager
    def on(stream):
        here.stream = stream
        yield
        del here.stream

    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", on)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: told.append(("begun", device)))
    with Beside("cuda:1") as beside:
        for together in (True, False):
            seconds = beside.run(
                lambda: told.append(("first", here.stream)), lambda: told.append(("second", here.stream)), together
            )
            assert min(seconds) >= 0.02
    assert told[0] == ("begun", "cuda:1")
    first, second = (next(stream for what, stream in told if what == name) for name in ("first", "second"))
    assert first is not second
    assert first.device == second.device == "cuda:1"
    assert [told.count(event) for event in (("first", first), ("second", second))] == [2, 2]
    assert [told.count(("done", stream)) for stream in (first, second)] == [2, 2]


@pytest.mark.torch
@pytest.mark.real
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it")
def test_the_slopes_of_this_machine_are_measured():
    from workbench.blending.real.measuring import measure_overlap

    memory, compute = measure_overlap(0.1)
    assert (memory.quantity, compute.quantity) == ("overlap_memory_slope", "overlap_compute_slope")
    for row in (memory, compute):
        assert 0 <= row.low <= row.median <= row.high <= 1
        assert (row.unit, row.runs) == ("1", 3)
        assert "two threads" in row.how or "two streams" in row.how


def test_without_torch_no_slope_is_measured(monkeypatch):
    from workbench.blending.real import measuring

    monkeypatch.setattr(measuring.importlib.util, "find_spec", lambda name: None)
    assert measuring.measure_overlap(0.1) == []
