"""Pools become the arrays that they describe, hardware the rates that it has, and runs the tables of a scale-out."""

import numpy as np
import polars as pl
import pytest

from workbench.errors import InputError, UnknownName
from workbench.profiles import cluster, model
from workbench.serving.model import (
    Autoscaler,
    Failure,
    Group,
    Multicast,
    MulticastPlan,
    Part,
    Pool,
    Scenario,
    StartUp,
    StepForm,
    Weights,
    lower,
    metrics,
    pool_on,
    serve,
    weights_on,
)
from workbench.serving.model.multicast_table import multicast_table

SECOND = StepForm(compute=(1.0, 0.0, 0.0, 0.0, 0.0))
QUEUE = Autoscaler(policy="queue", parameters={"waiting": 1})
START = StartUp(
    engine=Part(seconds=0.25, source="a stopwatch"),
    weights=Weights(path="tiers", bytes=8.0, dram_bytes_per_s=16.0, keep_s=1.0),
    warm_up=Part(seconds=0.25),
)


def group(name, **changes):
    settings = {"step": SECOND, "kv_tokens": 4096, "count": 0, "autoscaler": QUEUE, "start_up": START}
    return Group(model=name, **settings | changes)


def table(*rows):
    """Rows (model, arrival, prompt, output)."""
    return pl.DataFrame(
        list(rows), schema=["model", "arrival_s", "prompt_tokens", "output_tokens"], orient="row"
    ).with_row_index("request_id")


def test_a_pool_becomes_the_arrays_that_it_describes():
    scaler = Autoscaler(policy="backlog", parameters={"prompt_tokens_per_s": 1e4, "blocks": 99}, least=1, most=3)
    groups = (group("a", count=2), group("b", count=1, autoscaler=scaler, start_up=StartUp()))
    pool = Pool(hosts=2, places=2, tick_s=0.5, scrape_s=1.2, ssd_bytes_per_s=4.0, cache_bytes=20.0, cached=("b",))
    given = lower(Scenario(groups=groups, pool=pool), table(("a", 0.0, 1, 1), ("c", 0.0, 1, 1)))
    scaling = given.scaling
    assert given.instances.model.tolist() == [0, 1] * 4
    assert given.requests.model.tolist() == [0, 2]
    assert scaling.place.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert scaling.host.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    assert scaling.start_state.tolist() == [2, 0, 2, 0, 0, 2, 0, 0]
    assert (scaling.tick_s, scaling.scrape_ticks) == (0.5, 3)
    assert scaling.kind.tolist() == [1, 2]
    assert scaling.par.tolist() == [[1, 0, 0, 0, 0, 0, 0, 0], [1e4, 0.5, 0.7, 99, 0.75, 0.95, 0, 0]]
    assert (scaling.min_rows.tolist(), scaling.max_rows.tolist()) == ([0, 1], [2**63 - 1, 3])
    assert scaling.source.tolist() == [2, 0]
    assert scaling.control_s.tolist() == [0.5, 0]
    assert scaling.dram_s.tolist() == [0.5, 0] * 4
    assert scaling.ssd_bytes_per_s.tolist() == [4, 4]
    assert scaling.cached.tolist() == [[1, 1], [0, 1]]  # the two of "a" have come through the first host's memory
    assert scaling.keep_s.tolist() == [1, 0]


@pytest.mark.parametrize(("change", "sentence"), [
    ({"groups": (group("a"), group("a"))}, "two groups of one model"),
    ({"groups": (group("a", count=3),)}, "3 instances for 2 places"),
    ({"pool": Pool(hosts=1)}, "'ssd_bytes_per_s': is missing"),
    ({"pool": Pool(hosts=1, ssd_bytes_per_s=1.0, cached=("x",))}, "names 'x', which no group serves"),
    ({"pool": None}, "has an autoscaler or a start-up but there is no pool"),
    ({"pool": None, "groups": (Group(model="a", step=SECOND, kv_tokens=64, count=0),)}, "no instance between them"),
])  # fmt: skip
def test_scenarios_that_make_no_sense_are_refused(change, sentence):
    given = {"groups": (group("a"),), "pool": Pool(hosts=1, places=2, ssd_bytes_per_s=1.0)} | change
    with pytest.raises(InputError, match=sentence):
        lower(Scenario(**given), table(("a", 0.0, 1, 1)))


def test_policies_and_weights_that_lack_something_are_refused():
    with pytest.raises(InputError, match="lack 'waiting'"):
        Autoscaler(policy="queue")
    with pytest.raises(UnknownName, match="parameter of policy 'rate'"):
        Autoscaler(policy="rate", parameters={"requests": 1.0})
    with pytest.raises(InputError, match="least is 2, more than most"):
        Autoscaler(least=2, most=1)
    with pytest.raises(UnknownName, match="autoscaling policy"):
        Autoscaler(policy="cue")
    with pytest.raises(UnknownName, match="source of weights"):
        Weights(path="tier")
    with pytest.raises(InputError, match="multicast is missing"):
        Weights(path="multicast", bytes=1.0, dram_bytes_per_s=1.0)
    with pytest.raises(InputError, match="keep_s"):
        Weights(keep_s=-1.0)


@pytest.mark.parametrize(("schedule", "steps"), [
    ("chain", [4, 5, 6]),  # m + hops - 1
    ("binomial_pipeline", [5, 5, 5]),  # m - 1 + log2 4, all at once
    ("faasnet_tree", [7, 8, 8]),  # 2 (m - 1) + level: levels 1, 2, 2
    ("ring_broadcast", [4, 4.125, 4.25]),  # a chain of eighths
])  # fmt: skip
def test_targets_of_one_source_complete_by_the_closed_forms(schedule, steps):
    """Four blocks of a second each to three targets."""
    plan = Multicast(schedule=schedule, bytes_per_s=1e9, blocks=4)
    assert multicast_table(plan, 4e9, 1, 3)[0, 2].tolist() == steps


def test_more_sources_share_the_targets_in_turn():
    """Chains of blocks of a second: five targets of two sources are chains of three and two."""
    seconds = multicast_table(Multicast(schedule="chain", bytes_per_s=1e9, blocks=4), 4e9, 8, 5)
    assert seconds[1, 4].tolist() == [4, 4, 5, 5, 6]
    assert seconds[7, 4].tolist() == [4] * 5
    assert seconds[0, 1].tolist() == [4, 5, 0, 0, 0]


TWO_SECONDS = StepForm(compute=(2.0, 0.0, 0.0, 0.0, 0.0))


def piped(**changes):
    """Copies of four seconds; one target of one source serves in a pipeline after one second."""
    settings = {
        "schedule": "chain", "bytes_per_s": 2.0, "blocks": 1, "piped_step": TWO_SECONDS,
        "plans": (MulticastPlan(sources=1, targets=1, forms_s=(1.0,)),),
    }  # fmt: skip
    sent = Multicast(**settings | changes)
    weights = Weights(path="multicast", bytes=8.0, dram_bytes_per_s=16.0, multicast=sent, keep_s=99.0)
    return group(
        "a", count=1, limit=1, start_up=StartUp(engine=Part(seconds=0.5), weights=weights),
        autoscaler=Autoscaler(policy="queue", parameters={"waiting": 1}, most=2),
    )  # fmt: skip


def test_plans_become_tables():
    """Three places: up to two targets of up to two sources; the plan for nine targets has no place there."""
    plans = (
        MulticastPlan(sources=1, targets=2, complete_s=(3.0, 5.0), forms_s=(1.0, np.inf), pipelines=(4, 0)),
        MulticastPlan(sources=2, targets=2, forms_s=(2.0, 2.0)),
        MulticastPlan(sources=1, targets=9, complete_s=(1.0,) * 9),
    )
    both = (piped(plans=plans, switch="whole"), group("b"))
    given = lower(Scenario(groups=both, pool=Pool(hosts=3, ssd_bytes_per_s=1.0)), table(("a", 0.0, 1, 1))).scaling
    assert given.multicast_s[0].tolist() == [[[4, 0], [3, 5]], [[4, 0], [4, 4]]]
    assert given.piped_s[0].tolist() == [[[np.inf] * 2, [1, np.inf]], [[np.inf] * 2, [2, 2]]]
    assert given.piped_with[0].tolist() == [[[-1, -1], [4, 0]], [[-1, -1], [0, 0]]]
    assert np.isinf(given.piped_s[1]).all()
    assert given.piped_form[:, 0, 0].tolist() == [2, 1] * 3
    assert given.switch_whole.tolist() == [1, 0]


@pytest.mark.parametrize(("wrong", "sentence"), [
    (lambda: MulticastPlan(sources=1, targets=2, complete_s=(1.0,)), "complete_s has 1 numbers for 2 targets"),
    (lambda: MulticastPlan(sources=1, targets=1, pipelines=(0,)), "pipelines have no forms_s"),
    (lambda: MulticastPlan(sources=1, targets=1, forms_s=(-1.0,)), "holds -1.0; give 0 or more, or infinity"),
    (lambda: MulticastPlan(sources=1, targets=1, forms_s=(1.0,), pipelines=(-1,)), "number pipelines from 0"),
    (lambda: piped(piped_step=None), "there is no piped_step; give the step time of a member"),
    (lambda: piped(plans=[MulticastPlan(sources=1, targets=1)] * 2), "two for 1 sources and 1 targets"),
])  # fmt: skip
def test_plans_that_make_no_sense_are_refused(wrong, sentence):
    with pytest.raises(InputError, match=sentence):
        wrong()


def test_an_instance_is_useful_before_it_is_alone():
    """The second request waits from 0.5 s; a row starts at 1 s, serves in a pipeline from 2.5 s, and is alone at
    5.5 s: the second of its tokens is in the making then and is made anew, at 6.5 s."""
    requests = table(("a", 0.0, 4, 9), ("a", 0.5, 4, 2))
    run = serve(Scenario(groups=(piped(),), pool=Pool(hosts=2, ssd_bytes_per_s=4.0)), requests)
    row = run.scaleouts.row(0, named=True)
    assert [row[f"{name}_s"] for name in ("detected", "piped", "first_useful", "alone")] == [1, 2.5, 4.5, 5.5]
    assert run.requests["finish_s"].to_list() == [9, 6.5]
    assert "piped" in run.timeline["kind"].to_list()


def test_hardware_becomes_rates():
    """TP 4 on 8 accelerators: four PCIe links of 10 GB/s under two switches of 15 GB/s; two of four cards."""
    pcie = {"host_bytes_per_s": 10e9, "accelerators_per_pcie_switch": 2, "pcie_switch_bytes_per_s": 15e9}
    disks = {"ssd_bytes_per_s": 2e9, "ssds": 3, "host_memory_bytes": 1e12}
    cards = {"nic_bytes_per_s": 50e9, "nics": 4, "nic_latency_s": 1e-5}
    hosts = cluster(hosts=2, accelerators=8, accelerator="h100-80gb-sxm", **pcie, **disks, **cards)
    pool = pool_on(hosts, tp=4, tick_s=0.1)
    assert (pool.hosts, pool.places, pool.accelerators, pool.tick_s) == (2, 2, 4, 0.1)
    assert (pool.ssd_bytes_per_s, pool.cache_bytes) == (6e9, 1e12)
    assert pool.ssd_each_bytes_per_s == 4e9  # four accelerators use two of three paths
    llama = model("llama-3-8b")
    weights = weights_on(llama, hosts, tp=4, path="multicast", keep_s=3.0)
    assert weights.bytes == llama.weight_bytes
    assert weights.dram_bytes_per_s == 30e9
    assert weights.multicast == Multicast(schedule="chain", bytes_per_s=100e9, alpha_s=1e-5)
    assert weights.keep_s == 3
    with pytest.raises(InputError, match="'tp'"):
        pool_on(hosts, tp=9)


def scaled_out():
    """One place per host. A request at 100 s on the clock of the table; the tick at 101 s starts a row: 0.5 s of engine
    and 2 s of SSD, up at 103.5 s; two steps until 105.5 s. The last tick, at 105 s, sees it running, and the run ends.
    The place of the other host fails from 102 to 103 s."""
    pool = Pool(hosts=2, accelerators=4, ssd_bytes_per_s=4.0)
    failures = (Failure(time_s=2.0, instance=1, back_s=3.0),)
    return serve(Scenario(groups=(group("a"),), pool=pool, failures=failures), table(("a", 100.0, 4, 2)))


def test_a_scale_out_in_tables():
    run = scaled_out()
    assert run.scaleouts.drop("needed_s", "piped_s", "helping_s").rows() == [
        ("a", 0, 101.0, 104.5, 103.5, False, 1, 8.0, 0, "ssd", 0, 0)
    ]  # fmt: skip
    assert run.allocation.rows() == [(100, "a", 0, 0), (101, "a", 4, 0), (103.5, "a", 4, 4), (105.5, "a", 0, 0)]
    kinds = run.timeline.select("time_s", "entity", "kind").rows()
    assert kinds == [
        (100, "request 0", "arrival"), (101, "instance 0", "starting"), (102, "place 1", "failure"),
        (102, "instance 1", "dead"), (103, "place 1", "recovery"), (103, "instance 1", "empty"),
        (103.5, "instance 0", "up"), (104.5, "request 0", "first token"), (105.5, "request 0", "finish"),
    ]  # fmt: skip


def test_accelerator_time_is_that_of_rows_that_hold_weights_or_will():
    """From 1 s to the end at 5.5 s, four accelerators; two steps of a second are active."""
    found = metrics(scaled_out())
    assert found["gpu_allocated_s"] == 4 * 4.5
    assert found["gpu_active_s"] == 4 * 2


def test_without_a_pool_the_allocation_is_all_instances_that_are_up():
    groups = (Group(model="a", step=SECOND, kv_tokens=4096, count=2),)
    run = serve(
        Scenario(groups=groups, failures=(Failure(time_s=1.5, instance=0, back_s=2.0),)), table(("a", 7.0, 4, 3))
    )
    # On the first from 7 to 8.5 s, then on the other: a step for its prompt and the token it had, and one more.
    assert run.allocation.rows() == [(7, "a", 2, 1), (8.5, "a", 1, 1), (9, "a", 2, 1), (10.5, "a", 0, 0)]
    assert run.scaleouts.is_empty()


def test_a_model_without_rows_has_no_allocation_of_its_own():
    run = serve(
        Scenario(groups=(group("a"), group("b")), pool=Pool(hosts=1, ssd_bytes_per_s=1.0)), table(("c", 0.0, 1, 1))
    )
    assert run.allocation.rows() == [(0, "a", 0, 0), (0, "b", 0, 0)]
    assert metrics(run)["gpu_active_s"] == 0
    assert np.isnan(run.requests["finish_s"].to_numpy()).all()
