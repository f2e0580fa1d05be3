"""The smallest deployment by hand, what binds it, and the Azure conversation hour within its minute."""

import time
from html import unescape

import numpy as np
import polars as pl
import pytest
from operating_cases import SECOND, SERVED, SERVER, gpus, quarters, table

import workbench as wb
from workbench.errors import InputError, UserError
from workbench.operating import System
from workbench.serving import Engine, Failure, StepForm

ONE_TP = [wb.deployment()]


def planned(trace, promise, system=SERVER, cluster=None, **options):
    given = SERVED | {"deployments": ONE_TP, "attainment": 1.0} | options
    return wb.plan(trace, slo=promise, cluster=cluster or gpus(8), systems=[system], **given).table.row(0, named=True)


def test_services_of_two_and_a_half_seconds_each_second_take_three_servers():
    """Two servers fall behind by half a second a request, however the requests are spaced: compute."""
    even = table(*((float(k), 2_500_000, 1) for k in range(60)))
    found = planned(even, wb.slo(ttft_s=2.6, tbt_s=1))
    assert (found["instances"], found["accelerators"], found["attainment"], found["binds"]) == (3, 3, 1.0, "compute")


def test_bursts_bind_by_their_queue():
    """Four at once every 8 s, a second each: within 1.5 s only four servers will do; evenly spaced one would."""
    bursts = table(*((8.0 * (k // 4), 1_000_000, 1) for k in range(40)))
    found = planned(bursts, wb.slo(ttft_s=1.5, tbt_s=1))
    assert (found["instances"], found["binds"]) == (4, "queue")


def test_kv_binds_where_more_of_it_would_do():
    """Steps of a second, ten tokens each, KV for one request at a time: five at once take five instances."""
    system = System(name="paged", engine=Engine(reserve=True, block_tokens=10))
    found = planned(
        table(*[(0.0, 10, 10)] * 5), wb.slo(ttft_s=1.5, tbt_s=1.5), system, step=SECOND, kv_tokens=20, attainment=1.0
    )
    assert (found["instances"], found["binds"]) == (5, "KV")


def test_slots_bind_where_more_of_them_would_do():
    system = System(name="one at a time", engine=Engine(slots=1))
    found = planned(table(*[(0.0, 10, 10)] * 5), wb.slo(ttft_s=1.5, tbt_s=1.5), system, step=SECOND, kv_tokens=1000)
    assert (found["instances"], found["binds"]) == (5, "slots")


def test_instances_that_are_not_there_do_not_fail():
    """The one server that is needed fails for good at 5 s, so that two are, or the fourth one does, and one is enough;
    of eight there is no ninth."""
    each = table(*((2.0 * k, 1_000_000, 1) for k in range(10)))
    promise = wb.slo(ttft_s=1.5, tbt_s=1)
    found = planned(each, promise, failures=[Failure(time_s=5.5, instance=0)])
    assert (found["instances"], found["binds"]) == (2, "failures")
    found = planned(each, promise, failures=[Failure(time_s=5.5, instance=3)])
    assert (found["instances"], found["binds"]) == (1, "size of an instance")
    with pytest.raises(InputError, match="names instance 8, but there are 0 to 7"):
        planned(each, promise, failures=[Failure(time_s=5.5, instance=8)])


def test_places_of_hosts_that_are_not_there_do_not_fail():
    """Two models share hosts of two places: one host is enough, and what fails is on the other one."""
    two = table(*((3.0 * k, 100, 2) for k in range(10)), model=pl.Series(["a", "b"] * 5))
    given = {"slo": wb.slo(ttft_s=3, tbt_s=3), "models": "llama-3-8b", "step": SECOND, "kv_tokens": 1000}
    given |= {"systems": ["allcache"], "deployments": ONE_TP, "cluster": quarters(2, 2)}
    failures = [Failure(time_s=1, instance=3)]
    assert wb.plan(two, failures=failures, **given).table["instances"].to_list() == [2]
    with pytest.raises(InputError, match="names instance 4, but there are 0 to 3"):
        wb.plan(two, failures=[Failure(time_s=1, instance=4)], **given)


def test_one_instance_is_the_least():
    found = planned(table((0.0, 1000, 1)), wb.slo(ttft_s=1, tbt_s=1))
    assert (found["instances"], found["binds"]) == (1, "size of an instance")


def test_what_no_part_of_the_cluster_keeps_says_so():
    found = wb.plan(
        table(*[(0.0, 2_000_000, 1)] * 4), slo=wb.slo(ttft_s=1, tbt_s=1), cluster=gpus(4), systems=[SERVER],
        deployments=ONE_TP, **SERVED,
    )  # fmt: skip
    row = found.table.row(0, named=True)
    assert row["instances"] is None
    assert row["accelerators"] is None
    assert row["attainment"] == 0.0
    assert row["binds"] == "compute"
    assert "keeps it with no part of" in found.sentence
    assert found.sentence in found._repr_html_()
    assert f"compute; {row['why']}" in unescape(found._repr_html_())


def test_each_model_is_planned_by_itself():
    import polars as pl

    rows = [(float(k // 2), 2_500_000 if k % 2 else 500_000, 1) for k in range(60)]
    trace = table(*rows, model=pl.Series(["quick", "slow"] * 30))
    found = wb.plan(
        trace, slo=wb.slo(ttft_s=2.6, tbt_s=1), cluster=gpus(8), systems=[SERVER], deployments=ONE_TP, attainment=1.0,
        **SERVED,
    ).table  # fmt: skip
    assert dict(found.select("model", "instances").rows()) == {"quick": 1, "slow": 3}


def test_fewest_accelerators_over_all_deployments():
    """Steps do not get faster with TP here, so TP 1 is least; the others are tried with no more accelerators."""
    found = wb.plan(
        table(*((float(k), 10, 3) for k in range(40))), slo=wb.slo(ttft_s=3, tbt_s=3), cluster=gpus(8),
        models="llama-3-8b", step=StepForm(compute=(0.1, 0, 0, 0, 0)),
    )  # fmt: skip
    assert found.table.row(0, named=True)["accelerators"] == 1
    assert found.tried["accelerators"].max() <= 8


def scaling_plan(trace, system, promise, cluster=None, **options):
    given = {"models": "llama-3-8b", "step": SECOND, "kv_tokens": 2**20, "deployments": ONE_TP, "attainment": 1.0}
    given |= options
    return wb.plan(trace, slo=promise, cluster=cluster or quarters(), systems=[system], **given)


ONE_BY_ONE = {"autoscaler": "concurrency:requests=1", "limit": 1, "tick_s": 1.0, "least": 0, "keep_s": 0.0}


def test_a_system_that_scales_is_planned_by_the_most_it_may_have_and_told_by_its_gpu_time():
    """Pairs every 20 s, a step of a second each, starts from memory take 1 s after a tick of 1 s. Within 3.5 s both of
    a pair need an instance (up at 2.0 s, done at 3.0 s, one after the other 4.0 s); with starts that take no time, one
    would do: up at 1.0, done at 2.0 and 3.0 s. Two instances are held from the tick to the one that sees them idle."""
    pairs = table(*((20.0 * (k // 2), 8, 1) for k in range(10)))
    found = scaling_plan(pairs, wb.system("allcache", **ONE_BY_ONE), wb.slo(ttft_s=3.5, tbt_s=1))
    row = found.table.row(0, named=True)
    assert (row["instances"], row["accelerators"], row["peak_gpus"], row["binds"]) == (2, 2, 2.0, "start-up")
    # 1 to 4 s of every 20 s, since the tick of 3 s comes before the step's end; the run ends with the last pair
    assert row["gpu_allocated_s"] == 2 * (4 * 3 + 2)
    assert row["gpu_active_s"] == 10.0
    assert found.table.columns[-2:] == ["binds", "why"]
    assert set(found.tried["instances"]) == {1, 2, 4}
    assert "takes up to 2 instances of TP 1 (2 accelerators, 0.00778 GPU hours, kept for 100.0%)" in found.sentence


def test_where_even_starts_without_time_come_too_late_the_autoscaler_binds():
    """Within 1.5 s nothing that starts at a tick will do for the first request; an instance that is there does for
    both of its pair only if there are two."""
    pairs = table(*((20.0 * (k // 2), 8, 1) for k in range(10)))
    row = scaling_plan(pairs, wb.system("allcache", **ONE_BY_ONE), wb.slo(ttft_s=1.5, tbt_s=1)).table.row(0, named=True)
    assert row["instances"] is None
    assert row["attainment"] == 0.0
    assert row["binds"] == "autoscaling"


def test_models_that_share_their_places_are_planned_together_by_hosts():
    """Two models, a request of each every 20 s at once: both fit one host of two places, and it is the least."""
    import polars as pl

    pairs = table(*((20.0 * (k // 2), 8, 1) for k in range(10)), model=pl.Series(["a", "b"] * 5))
    found = scaling_plan(pairs, wb.system("allcache", **ONE_BY_ONE), wb.slo(ttft_s=3.5, tbt_s=1))
    row = found.table.row(0, named=True)
    assert (row["model"], row["instances"], row["binds"]) == ("a, b", 2, "size of an instance")
    assert set(found.tried["instances"]) == {2, 4}


def test_bounds_of_the_deployment_bound_the_search():
    crowd = table(*[(0.0, 8, 1)] * 3)
    bounded = [wb.deployment(prefill=(2, 3), colocated=True)]
    found = scaling_plan(crowd, wb.system("allcache", **ONE_BY_ONE), wb.slo(ttft_s=9, tbt_s=1), deployments=bounded)
    assert found.table["instances"].to_list() == [2]
    assert found.tried["instances"].min() == 2
    with pytest.raises(UserError, match=r"1 models x 5 instances x TP 1 = 5 accelerators at least, .* for 4 instances"):
        scaling_plan(crowd, "allcache", wb.slo(ttft_s=9, tbt_s=1), deployments=[wb.deployment(prefill=(5, 9))])


def test_a_rule_among_the_policies_is_the_one_that_is_planned():
    crowd = table(*[(0.0, 8, 1)] * 3)
    found = scaling_plan(
        crowd, wb.system("allcache", limit=1, tick_s=1.0), wb.slo(ttft_s=2.5, tbt_s=1),
        policies={"autoscaler": "concurrency:requests=1", "dispatch": "first-free"},
    )  # fmt: skip
    # One is there at first and serves by 1 s; at the tick of 1 s two wait, of which one start by 2 s serves by 3 s.
    assert found.table["instances"].to_list() == [None]
    assert found.table["binds"].to_list() == ["start-up"]


def test_azure_conversation_hour_on_two_hosts_of_eight(shared_data):
    begun = time.perf_counter()
    found = wb.plan(
        "azure-conv-2023", slo=wb.slo(ttft_s=1.0, tbt_s=0.1),
        cluster=wb.cluster(hosts=2, accelerators=8, accelerator="h100-80gb-sxm", nic_bytes_per_s=50e9),
        models="llama-3-70b",
    )  # fmt: skip
    assert time.perf_counter() - begun < 60
    row = found.table.row(0, named=True)
    assert row["attainment"] >= 0.9
    assert 2 <= row["accelerators"] <= 16
    fewer = found.tried.filter((found.tried["tp"] == row["tp"]) & (found.tried["instances"] == row["instances"] - 1))
    assert (fewer["attainment"] < 0.9).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attainment": 0}, "field 'attainment': is 0"),
        (
            {"trace": table().cast({"arrival_s": float, "prompt_tokens": int, "output_tokens": int})},
            "holds no requests",
        ),
        ({"systems": ["aegaeon"]}, "is a pool of models"),
        ({"models": "falcon-180b", "cluster": gpus(1)}, "falcon-180b"),
        ({"deployments": [wb.deployment(tp=3)]}, "does not divide"),
        ({"systems": []}, "field 'systems': is "),
        ({"slots": 3}, "no setting of such runs named 'slots'"),
        ({"deployment": wb.deployment()}, "no setting of such runs named 'deployment'"),
        ({"backend": "simpy"}, "no setting of such runs named 'backend'"),  # its runs are compiled
    ],
)
def test_what_cannot_be_planned_is_refused(options, words):
    given = {"trace": table((0.0, 10, 1)), "slo": wb.slo(ttft_s=1, tbt_s=1), "cluster": gpus(8), "models": "llama-3-8b"}
    given |= options
    with pytest.raises((UserError, InputError), match=words):
        wb.plan(given.pop("trace"), **given)


APART_AT_FIRST = {
    "distserve-full": "full", "distserve-half": "full", "blitzscale": "least", "blitzscale@network": "least",
}  # fmt: skip
"""A plan looks for the numbers themselves, so that half of them are not taken."""

TWICE = [(20.0 * (k // 2), 8, 3) for k in range(6)]
"""Two at a time, whose prompts take a second each, and two more tokens a second each."""


def apart_plan(ttft_s, tbt_s, name, **changes):
    system = wb.system(name, engine=Engine(slots=1, reserve=True, block_tokens=4), **changes)
    return wb.plan(
        table(*TWICE), slo=wb.slo(ttft_s=ttft_s, tbt_s=tbt_s), cluster=quarters(2, 3), systems=[system], step=SECOND,
        models="llama-3-8b", kv_tokens=64, deployments=ONE_TP, attainment=1.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("ttft_s", "tbt_s", "prefill", "decode", "binds"),
    [
        (1.5, 1.5, 2, 2, "slots"),
        (2.5, 9, 1, 1, "size of an instance"),
        (1.5, 9, 2, 1, "slots"),
        (2.5, 1.5, 1, 2, "slots"),
    ],
)
def test_both_numbers_are_found_where_prompts_and_decoding_are_apart(ttft_s, tbt_s, prefill, decode, binds):
    """One after the other, a second prompt takes 2 s, and a second one that decodes waits 2 s for its next token; in a
    batch of two neither would."""
    found = apart_plan(ttft_s, tbt_s, "distserve-full")
    row = found.table.row(0, named=True)
    assert (row["prefill"], row["decode"], row["instances"], row["binds"]) == (prefill, decode, prefill + decode, binds)
    assert f"({prefill} for prompts and {decode} that decode, {row['accelerators']} accelerators" in found.sentence


def test_no_smaller_pair_keeps_the_promise_of_roles_apart():
    """All pairs are run one by one. A dozen prompts at once, of which a decoding instance holds few at a time."""
    crowd = table(*[(k / 4, 300 + 100 * (k % 5), 6) for k in range(24)])
    promise, step = wb.slo(ttft_s=1.2, tbt_s=0.6), StepForm(compute=(0.05, 1e-3, 0.0, 0.0, 0.02))
    given = {"cluster": quarters(2, 3), "models": "llama-3-8b", "step": step, "kv_tokens": 2048}
    found = wb.plan(crowd, slo=promise, systems=["distserve-full"], deployments=ONE_TP, attainment=0.9, **given)
    kept = {}
    for prefill in range(1, 6):
        for decode in range(1, 7 - prefill):
            pair = wb.deployment(prefill=(prefill, prefill), decode=(decode, decode))
            metrics = wb.simulate("distserve-full", trace=crowd, slo=promise, deployment=pair, **given).metrics()
            kept[prefill, decode] = metrics["attainment"] >= 0.9
    row = found.table.row(0, named=True)
    assert kept[row["prefill"], row["decode"]]
    assert row["instances"] == min(sum(pair) for pair, does in kept.items() if does) > 2


@pytest.mark.parametrize("seed", [10, 45, 56])
def test_the_pair_is_the_best_of_all_also_where_fewer_of_a_kind_keep_it_better(seed):
    """A pair with fewer accelerators keeps it than any that is reached by leaving out one at a time:
    more instances that compute prompts hand requests over sooner, which then wait longer for their second token."""
    rng = np.random.default_rng(seed)
    arrival_s = np.sort(rng.uniform(0, 20, int(rng.integers(5, 25))))
    arrival_s = np.floor(arrival_s - arrival_s[0]) if seed % 2 else arrival_s - arrival_s[0]
    rows = [(float(t), int(rng.integers(1, 40)), int(rng.integers(1, 8))) for t in arrival_s]
    promise = wb.slo(ttft_s=float(rng.choice([1.2, 2, 4, 8])), tbt_s=float(rng.choice([1.2, 2, 3])))
    engine = Engine(slots=int(rng.choice([1, 2, 4])), reserve=True, block_tokens=4, chunk=16, budget=16)
    name = ("distserve-full", "blitzscale", "blitzscale@network", "distserve-half")[seed % 4]
    system, share = (
        wb.system(name, engine=engine, provisioning=APART_AT_FIRST[name]),
        float(rng.choice([0.5, 0.8, 0.9, 1])),
    )
    given = {"cluster": quarters(2, 3), "models": "llama-3-8b", "step": SECOND, "kv_tokens": 256}
    kept = {}
    for prefill in range(1, 6):
        for decode in range(1, 7 - prefill):
            most = wb.deployment(prefill=(1, prefill), decode=(1, decode))
            run = wb.simulate(system, trace=table(*rows), slo=promise, deployment=most, **given)
            kept[prefill, decode] = run.metrics()["attainment"]
    (found,) = wb.plan(
        table(*rows), slo=promise, systems=[system], deployments=ONE_TP, attainment=share, **given
    ).table.to_dicts()
    wanted = min((sum(pair), -kept[pair]) for pair in kept if kept[pair] >= share)
    assert (found["instances"], -found["attainment"]) == wanted
    assert kept[found["prefill"], found["decode"]] == found["attainment"]


def test_a_system_that_scales_by_role_is_planned_by_the_most_of_each():
    """One of each will do, as in the test above. Both are there from 0 to 45 s, when the last pair, which came at 40 s,
    has decoded, one after the other; of each pair one works for 2 s and the other one for 4 s."""
    found = apart_plan(2.5, 9, "blitzscale", autoscaler="concurrency:requests=1", tick_s=0.25)
    row = found.table.row(0, named=True)
    assert (row["prefill"], row["decode"], row["accelerators"]) == (1, 1, 2)
    assert row["gpu_allocated_s"] == pytest.approx(2 * 45, rel=1e-4)  # KV takes its time, too
    assert row["gpu_active_s"] == 3 * 6


def test_several_models_with_roles_apart_are_refused():
    import polars as pl

    trace = table((0.0, 8, 3), (0.0, 8, 3), model=pl.Series(["a", "b"]))
    with pytest.raises(UserError, match="two numbers would have to be found for each of a, b; plan for one model"):
        wb.plan(
            trace, slo=wb.slo(ttft_s=1, tbt_s=1), cluster=quarters(2, 3), models="llama-3-8b", step=SECOND,
            systems=["distserve-full"], deployments=ONE_TP,
        )  # fmt: skip
