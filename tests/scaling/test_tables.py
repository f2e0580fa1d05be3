"""Plans for the serving engine: the scale-outs themselves, entry by entry, and runs of the engine with them."""

import numpy as np
import polars as pl
import pytest

from workbench.errors import InputError
from workbench.scaling.model import ScaleOut, multicast_plans, scale_out, warm_plans, warm_start
from workbench.serving import Group, Scenario, StepForm, serve
from workbench.serving.model import Autoscaler, Engine, Multicast, Pool, StartUp, Weights
from workbench.serving.simulated.run import simulate

SHAPE = ScaleOut(sources=1, targets=1, weight_bytes=16.0, bytes_per_s=1.0)


def test_every_entry_is_its_scale_out():
    plans = {(plan.sources, plan.targets): plan for plan in multicast_plans(SHAPE, 3, 5)}
    assert set(plans) == {(s, t) for s in (1, 2, 3) for t in (1, 2, 3, 4, 5)}
    for (sources, targets), plan in plans.items():
        out = scale_out(SHAPE.model_copy(update={"sources": sources, "targets": targets}))
        assert plan.complete_s == tuple(out.complete_s)
        assert plan.forms_s == tuple(out.forms_s)
        together = np.array(plan.pipelines)
        for pipeline in out.pipelines:
            assert len(set(together[list(pipeline.nodes)])) == 1


def test_more_sources_than_targets_are_as_many():
    plans = {(plan.sources, plan.targets): plan for plan in multicast_plans(SHAPE, 4, 2)}
    assert plans[4, 2].complete_s == plans[2, 2].complete_s
    assert plans[4, 2].sources == 4


@pytest.mark.parametrize("nodes", [1, 2, 3, 8])
def test_warm_plans_are_warm_starts(nodes):
    size = (3.0, 2.0, 2.0, 3.0)
    plan = warm_plans(size, 2.0, 8)[nodes - 1]
    found = warm_start(nodes, size, 2.0)
    assert (plan.sources, plan.targets) == (0, nodes)
    assert plan.complete_s == tuple(found.complete_s)
    assert min(plan.forms_s) == found.pipelines[0].forms
    for pipeline in found.pipelines:
        assert {plan.forms_s[node] for node in pipeline.nodes} == {pipeline.forms}
        assert len({plan.pipelines[node] for node in pipeline.nodes}) == 1


@pytest.mark.parametrize("size", [(0, 1), (1, 0), (65, 1), (1, 65)])
def test_sizes_that_cannot_be(size):
    with pytest.raises(InputError, match="from 1 to 64"):
        multicast_plans(SHAPE, *size)


def test_the_engine_serves_early_by_them():
    """One replica scales to 8; 7 targets of 8 blocks in 16 parts of 1 s form pipelines of 4, 2 and 1 at 18 s.

    With two replicas (notes §2.6) 4 nodes form one at 9 s and 2 at 10 s of 17 s. Requests take 1 s a token alone and
    3 s through a pipeline; six wait from 0 on, and the replicas keep two others.
    """
    plans = multicast_plans(SHAPE, 7, 7)
    step, piped = (StepForm(compute=(seconds, 0, 0, 0, 0)) for seconds in (1.0, 3.0))
    sent = Multicast(schedule="binomial_pipeline", bytes_per_s=1.0, plans=plans, piped_step=piped, switch="whole")
    weights = Weights(path="multicast", bytes=16.0, dram_bytes_per_s=1.0, multicast=sent)
    group = Group(
        model="m", count=2, engine=Engine(slots=1, reserve=True), step=step, kv_tokens=10_000, limit=1,
        autoscaler=Autoscaler(policy="queue", parameters={"waiting": 1}, least=2, most=8),
        start_up=StartUp(weights=weights),
    )  # fmt: skip
    pool = Pool(hosts=8, tick_s=1.0, ssd_bytes_per_s=1.0)
    table = pl.DataFrame(
        {"model": ["m"] * 8, "arrival_s": [0.0] * 8, "prompt_tokens": [1] * 8, "output_tokens": [40, 40] + [20] * 6}
    )
    run = serve(Scenario(groups=(group,), pool=pool), table, backend=simulate)
    first = run.requests["first_token_s"].to_list()
    assert first[:2] == [1.0, 1.0]
    forms = [1 + 9] * 4 + [1 + 10] * 2  # the first tick is at 1 s
    assert first[2:] == [pytest.approx(at + 3) for at in forms]
    # switched at 1 + 17 s: two tokens made at 16 s (or 17 s), the step in progress lost, a prefill and 17 more steps
    assert run.requests["finish_s"].to_list()[2:6] == [pytest.approx(18 + 1 + 17)] * 4
