"""Systems that scale, by hand: where weights come from, when instances are there, what deployments bound."""

import re

import numpy as np
import polars as pl
import pytest
from operating_cases import SCALING, SECOND, WEIGHTS, gpus, quarters, table

import workbench as wb
from workbench.errors import InputError, UserError
from workbench.operating.growing import prompt_rate
from workbench.serving import ENGINES, Failure, StepForm

BOTH = pytest.mark.parametrize("backend", ["compiled", "simpy"])
TABLES = ("requests", "iterations", "segments", "timeline", "allocation", "scaleouts", "transfers", "links")


def served(system, *rows, cluster=None, **options):
    """Steps of a second; one request at a time on each instance, so that others wait at the router."""
    given = {"models": "llama-3-8b", "step": SECOND, "kv_tokens": 4096, "trace": table(*rows)} | options
    return wb.simulate(system, cluster=cluster or quarters(), **given)


def starts(run):
    """(decided, by which path, up) of every load."""
    return run.scaleouts.select("detected_s", "tier", "alone_s").rows()


@BOTH
def test_serverlessllm_reads_the_ssd_once_and_memory_until_it_is_forgotten(backend):
    """Kept for 15 s after the last use. Up at 5 s, done at 6 s, which the tick of 7 s sees; from memory at 11 s, done
    at 13 s and gone at 14 s; at 31 s the weights are forgotten."""
    system = wb.system("serverlessllm@lambdascale", limit=1)
    run = served(system, (0.0, 8, 1), (10.5, 8, 1), (30.5, 8, 1), backend=backend)
    assert starts(run) == [(1.0, "ssd", 5.0), (11.0, "dram", 12.0), (31.0, "ssd", 35.0)]
    assert run.requests["finish_s"].to_list() == [6.0, 13.0, 36.0]
    assert run.metrics()["gpu_allocated_s"] == (7 - 1) + (14 - 11) + (36 - 31)
    assert run.metrics()["gpu_active_s"] == 3.0


@BOTH
@pytest.mark.parametrize(("variant", "second"), [("paper", (40.0, "dram", 41.0)), ("artifact", (40.0, "ssd", 44.0))])
def test_serverlessllm_forgets_after_five_minutes_by_the_paper_and_thirty_seconds_by_its_artifact(
    backend, variant, second
):
    """Done and gone at 6 s; needed again 34 s later."""
    rule = {"autoscaler": "concurrency:requests=1", "tick_s": 1.0, "keep_s": 0.0, "least": 0}
    system = wb.system("serverlessllm@blitzscale", variant=variant, **rule)
    run = served(system, (0.0, 8, 1), (39.5, 8, 1), backend=backend)
    assert starts(run) == [(1.0, "ssd", 5.0), second]


@BOTH
def test_in_allcache_every_start_comes_from_memory(backend):
    rule = {"autoscaler": "concurrency:requests=1", "tick_s": 1.0, "keep_s": 0.0, "least": 0, "cache_ttl_s": 0.0}
    run = served(wb.system("allcache", **rule), (0.0, 8, 1), (0.0, 8, 1), (99.5, 8, 1), backend=backend)
    assert starts(run) == [(1.0, "dram", 2.0), (1.0, "dram", 2.0), (100.0, "dram", 101.0)]


@BOTH
def test_ideal_instances_are_there_at_once_and_go_when_idle(backend):
    """Three wait at the tick of 1 s; two are done at 2 s, which the tick of 3 s sees, and one at 4 s."""
    run = served(wb.system("ideal", limit=1), (0.0, 8, 1), (0.0, 8, 1), (0.0, 8, 3), backend=backend)
    assert starts(run) == [(1.0, "ideal", 1.0)] * 3
    assert run.allocation.select("time_s", "gpus_allocated", "gpus_active").rows() == [
        (0, 0, 0), (1, 3, 3), (2, 3, 1), (3, 1, 1), (4, 0, 0),
    ]  # fmt: skip
    assert run.transfers.is_empty()


@BOTH
@pytest.mark.parametrize(
    ("system", "ready_s"),
    [
        # a group is set up in 0.1 s; a ring of 16 x 8 slices, the second one behind the first
        ("nccl", [7 + 0.1 + 2.0, 7 + 0.1 + 2.0 * (1 + 1 / 128)]),
        ("faasnet", [7 + 2.0, 7 + 2.0 * (1 + 1 / 16)]),  # two below one source are a chain of 16 blocks
    ],
)
def test_weights_come_from_a_remote_copy_where_there_is_one_and_else_from_the_local_ssd(system, ready_s, backend):
    """The first instance reads its SSD for 4 s and serves for long; at 7 s two more are wanted, on the other host or
    not. When all are gone the next one reads its SSD again: nothing is kept in memory."""
    control = wb.system(system).engine_start.seconds
    run = served(wb.system(system, limit=1), (0.0, 8, 9), (6.5, 8, 1), (6.5, 8, 1), (50.0, 8, 1), backend=backend)
    first, *others, last = starts(run)
    assert first == pytest.approx((1.0, "ssd", 5.0 + control)) if control == 0 else first[1] == "ssd"
    assert first[2] == pytest.approx(5.0 + control)
    assert [(at, tier) for at, tier, _ in others] == [(7.0, "multicast")] * 2
    assert [up for _, _, up in others] == pytest.approx(ready_s, rel=1e-12)
    assert last[1:] == ("ssd", pytest.approx(last[0] + 4.0 + control))
    assert run.scaleouts["sources"].to_list() == [0, 1, 1, 0]


def test_an_instance_reads_from_its_own_storage_path_only():
    """BlitzScale cluster A: 16 GB over 10 Gbps of SSD are 12.8 s (OSDI'25 §1), however many others read."""
    run = wb.simulate(
        wb.system("serverlessllm@lambdascale", limit=1), cluster="blitzscale-a", models="llama-3-8b",
        trace=table(*[(0.0, 8, 1)] * 8), step=SECOND, kv_tokens=4096,
    )  # fmt: skip
    seconds = run.scaleouts["alone_s"] - run.scaleouts["detected_s"]
    assert run.scaleouts["tier"].to_list() == ["ssd"] * 8
    assert seconds.to_list() == pytest.approx([16.06 / 1.25] * 8, rel=1e-3)


@BOTH
def test_a_host_keeps_what_fits_its_memory(backend):
    """1.5 copies fit: the second model takes the room of the first, which nobody holds any more."""
    trace = table((0.0, 8, 1), (10.5, 8, 1), (20.5, 8, 1), (21.5, 8, 1), model=pl.Series(["a", "b", "b", "a"]))
    system = wb.system("serverlessllm@lambdascale", limit=1, cache_ttl_s=np.inf)
    run = served(system, trace=trace, cluster=quarters(hosts=1, accelerators=1), backend=backend)
    assert run.scaleouts.select("model", "tier").rows() == [("a", "ssd"), ("b", "ssd"), ("b", "dram"), ("a", "ssd")]


def test_an_engine_and_a_warm_up_take_their_time_before_and_after_the_weights():
    system = wb.system("allcache", engine_start=0.5, warm_up=0.25, autoscaler="concurrency:requests=1", tick_s=1.0)
    run = served(system.replaced(least=0), (0.0, 8, 1))
    assert starts(run) == [(1.0, "dram", 1.0 + 0.5 + 1.0 + 0.25)]
    assert run.transfers.select("start_s", "end_s", "bytes").rows() == [(1.5, 2.5, WEIGHTS)]


def test_a_hybrid_takes_parts_of_two_systems():
    """AllCache's weights by λScale's rule, in another number format: half the bytes in half the time."""
    ours = wb.system("allcache", autoscaler="queue", limit=1, least=0, tick_s=1.0)
    run = served(ours, (0.0, 8, 1), deployment=wb.deployment(dtype="fp8"))
    assert starts(run) == [(1.0, "dram", 1.5)]
    assert run.transfers["bytes"].to_list() == [WEIGHTS / 2]


@pytest.mark.parametrize(
    ("deployment", "bounds", "words"),
    [
        ({}, (1, 2**63 - 1), ()),
        ({"prefill": (2, 3), "colocated": True}, (2, 3), ("Each model has 2 to 3 instances, by the deployment.",)),
        (
            {"prefill": (2, 3), "decode": (9, 9), "colocated": True}, (2, 3),
            ("Each model has 2 to 3 instances, by the deployment. Bounds of decoding play no part",),
        ),
        ({"decode": (1, 2), "colocated": True}, (1, 2**63 - 1), ("Bounds of decoding play no part",)),
        ({"prefill": (1, 1), "decode": (1, 2)}, (2, 3), ("each model has 2 to 3, the bounds of both kinds",)),
        ({"prefill": (1, 2)}, (1, 2), ("each model has 1 to 2, the bounds of the one kind",)),
    ],
)  # fmt: skip
def test_deployments_bound_the_instances_and_a_note_says_how(deployment, bounds, words):
    run = served("allcache", *[(0.1 * k, 2048, 3) for k in range(30)], deployment=wb.deployment(**deployment))
    (group,) = run.scenario.groups
    assert (group.autoscaler.least, group.autoscaler.most) == bounds
    assert group.count == bounds[0]
    held = run.allocation.filter(pl.col("time_s") < run.allocation["time_s"].max())["gpus_allocated"]
    assert (held.min(), held.max()) == (bounds[0], min(4, bounds[1]))
    told = [note for note in run.notes if re.search("[Ee]ach model|decoding", note)]
    assert len(told) == len(words)
    assert all(word in note for word, note in zip(words, told, strict=True))


def test_parameters_that_a_rule_leaves_out_are_worked_out():
    """Prompts of 2,048 tokens a second; 4,096 tokens are 256 blocks of 16; λScale's queue is of batches, by GPU."""
    step = StepForm(compute=(0.5, 0.5 / 2048, 0.0, 0.0, 0.0))
    assert prompt_rate(step, ENGINES["continuous"]) == pytest.approx(2048)

    def rule(system, **options):
        run = served(system, (0.0, 2047, 2), (3.0, 2047, 2), step=step, **options)
        return run.scenario.groups[0].autoscaler.parameters

    assert rule("allcache") == pytest.approx({"prompt_tokens_per_s": 2048, "blocks": 256})
    assert rule("ideal", deployment=wb.deployment(tp=2)) == {"waiting": 8}
    assert rule("ideal", policies={"autoscaler": "concurrency"}) == {"requests": 4}
    assert rule("ideal", policies={"autoscaler": "queue:waiting=3"}) == {"waiting": 3}
    # Each brings a prompt of a second and a token that costs its share of 16.2 in a step of a second.
    (bears,) = rule("ideal", policies={"autoscaler": "rate"}).values()
    assert bears == pytest.approx(1 / (0.5 + 0.5 * 2047 / 2048 + 0.5 / min(256, 4096 / 2048)), rel=1e-3)


def test_policies_choose_the_rule():
    run = served("fixed", (0.0, 8, 1), (0.0, 8, 1), policies={"autoscaler": {"policy": "concurrency", "requests": 1}})
    assert run.system.autoscaler.policy == "concurrency"
    assert run.scenario.pool is not None
    still = served("ideal", (0.0, 8, 1), policies={"autoscaler": "none"}, deployment=wb.deployment(prefill=(2, 2)))
    assert still.scenario.pool is None
    assert len(still.scenario.instance_models) == 2
    assert any("give the system a limit" in note for note in served(wb.system("ideal", limit=None), (0.0, 8, 1)).notes)


def test_a_bare_name_says_what_it_is_meant_as():
    notes = served("serverlessllm", (0.0, 8, 1)).notes
    assert notes == ("serverlessllm is meant as serverlessllm@blitzscale; it is serverlessllm@lambdascale too.",)


@pytest.mark.parametrize(
    ("system", "options", "words"),
    [
        ("faasnet", {"cluster": gpus(2)}, "reads weights from SSD where it finds them .*, but .* states no SSD"),
        ("nccl", {"cluster": quarters(nic_bytes_per_s=None)}, "has no network card: no source states one"),
        ("allcache", {"cluster": "bprr-testbed-9"}, "has unlike hosts"),
        ("allcache", {"deployment": wb.deployment(tp=3)}, "TP 3"),
        ("allcache", {"deployment": wb.deployment(prefill=(5, 9))}, "1 models x 5 instances x TP 1 = 5 accel.* 4"),
        ("allcache", {"policies": {"autoscaler": print}}, "is a function; choose a rule"),
        ("allcache", {"policies": {"autoscaler": 3}}, "field 'autoscaler': is 3"),
        ("allcache", {"policies": {"autoscaler": "rate"}, "trace": table((0.0, 8, 1)).clear()}, "give requests_per_s"),
        ("allcache", {"failures": [Failure(time_s=0, instance=4)]}, "instance.*4"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_one_sentence(system, options, words):
    given = {"trace": table((0.0, 8, 1))} | options
    with pytest.raises((UserError, InputError), match=words) as caught:
        served(system, **given)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def two_models(count=600):
    """The first requests of a bursty trace, thirty times as fast, for two models in turn."""
    requests = wb.trace("azure-code-2023-like").requests.head(count)
    return requests.with_columns(pl.col("arrival_s") / 30, model=pl.Series(["a", "b"] * (count // 2)))


def busy(system, backend="compiled", **options):
    given = {"cluster": "lambdascale-testbed1", "models": "llama-3-8b", "trace": two_models(), "seed": 3}
    given |= {"slo": wb.slo(ttft_s=1.0, tbt_s=0.1), "backend": backend} | options
    return wb.simulate(system, **given)


FAILURES = [Failure(time_s=3, instance=0, back_s=5), *(Failure(time_s=7 + j, instance=j) for j in (1, 2))]


@pytest.mark.parametrize("failures", [(), FAILURES], ids=["", "failing"])
@pytest.mark.parametrize("system", [*SCALING, "serverlessllm"])
def test_both_backends_give_the_same_tables(system, failures):
    one, other = (busy(system, backend, failures=failures) for backend in ("compiled", "simpy"))
    for name in TABLES:
        assert getattr(one, name).equals(getattr(other, name)), name
    assert str(one.metrics()) == str(other.metrics())
    assert one.scaleouts.height > 0


@pytest.mark.parametrize("until_s", [np.inf, 9.5])
@pytest.mark.parametrize("failures", [(), FAILURES], ids=["", "failing"])
@pytest.mark.parametrize("system", SCALING)
def test_requests_bytes_and_accelerators_are_conserved(system, failures, until_s):
    run = busy(system, failures=failures, until_s=until_s)
    found = run.metrics()
    assert found["arrived"] == found["done"] + found["rejected"] + found["inside"]
    assert found["inside"] == 0 or until_s < np.inf
    moved = run.transfers
    assert moved["bytes"].sum() == run.scaleouts["bytes"].sum()
    whole = moved.filter(pl.col("end_s").is_not_nan())
    assert (whole["bytes"] == WEIGHTS).all()
    own = run.links.filter(~pl.col("link").str.starts_with("SSD"))
    over_own = (own["bytes_per_s"] * (own["end_s"] - own["start_s"])).sum()
    assert over_own == pytest.approx(whole.filter(pl.col("path") != "ssd")["bytes"].sum(), rel=1e-9)
    ssd = run.links.filter(pl.col("link").str.starts_with("SSD"))
    over_ssd = (ssd["bytes_per_s"] * (ssd["end_s"] - ssd["start_s"])).sum()
    read = whole.filter(pl.col("path") == "ssd")["bytes"].sum()
    lost = moved.filter((pl.col("path") == "ssd") & pl.col("end_s").is_nan()).height
    assert read * (1 - 1e-9) <= over_ssd <= (read + lost * WEIGHTS) * (1 + 1e-9)
    held = run.allocation.select("time_s", "model", "gpus_allocated", "gpus_active")
    assert (held["gpus_active"] <= held["gpus_allocated"]).all()
    assert found["peak_gpus"] <= 12
    assert 0 < found["gpu_active_s"] <= found["gpu_allocated_s"] <= 12 * found["span_s"]


@pytest.mark.parametrize("system", SCALING)
def test_a_run_that_scales_comes_back_from_disk(system, tmp_path):
    run = busy(system, trace=two_models(40))
    loaded = wb.load(run.save(tmp_path / "run"))
    for name in TABLES:
        assert getattr(loaded, name).equals(getattr(run, name)), name
    assert loaded.system == run.system
    assert loaded.scenario == run.scenario
    assert str(loaded.metrics()) == str(run.metrics())
    assert run.chrome_trace(tmp_path / "run.json").is_file()
    assert "weight_bandwidth_share" in run._repr_html_()


@BOTH
@pytest.mark.parametrize("system", SCALING)
def test_hostile_requests_are_served_or_rejected(system, backend):
    """No tokens, more than fit, many at once, and then nobody for an hour."""
    rows = [(0.0, 0, 0), (0.0, 8, 0), (0.0, 5000, 9), *[(1.0, 8, 2)] * 50, (3600.0, 8, 1)]
    run = served(system, *rows, backend=backend)
    status = run.requests["status"].to_list()
    assert status == ["done", "done", "rejected", *["done"] * 51]
    empty = served(system, trace=table((0.0, 8, 1)).clear(), backend=backend)
    assert empty.sentence.endswith("no requests came.")
    assert empty.scaleouts.is_empty()
    turned_away = served("ideal", (0.0, 5000, 9), (1.0, 6000, 9), backend=backend)
    assert " served 0 of 2 requests without any instance of TP 1 and rejected 2 that fit none." in turned_away.sentence


@BOTH
@pytest.mark.parametrize(
    ("system", "until_s", "said"),
    [
        ("allcache", 0.0, "served 0 of the 1 of 4 requests that had come when the clock stopped after 0 s"),
        ("ideal", 0.0, "served 0 of the 1 of 4 requests that had come when the clock stopped after 0 s"),
        ("allcache", 4.0, "served 1 of the 2 of 4 requests that had come when the clock stopped after 4 s by up to"),
        ("allcache", 9.0, "served 3 of 4 requests when the clock stopped after 9 s by up to"),
        ("allcache", 1e6, "served 4 of 4 requests by up to"),
        ("fixed", 0.0, "served 0 of the 1 of 4 requests that had come when the clock stopped after 0 s by 4 instances"),
    ],
)
def test_a_clock_that_stops_early_is_told(system, until_s, said, backend):
    """Requests at 0, 4, 5 and 9 s; in no time nobody can say how many instances there were."""
    run = served(system, (0.0, 8, 1), (4.0, 8, 1), (5.0, 8, 1), (9.0, 8, 50), until_s=until_s, backend=backend)
    assert said in run.sentence
    assert "without any instance" not in run.sentence
