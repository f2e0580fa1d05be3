"""Systems of a pool by name: the pooling engine's own outcome, in the tables that every run has."""

import json

import numpy as np
import polars as pl
import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import InputError, UnknownName, UserError
from workbench.operating import PooledRun
from workbench.operating.pool_systems import CHANGEABLE, POOL_SYSTEMS
from workbench.pooling import Pooling, market_trace, pool_model, pooled, pooling_on
from workbench.pooling.policy.names import ADMISSIONS, SYSTEMS

NAMES = ("aegaeon", "serverlessllm@aegaeon", "serverlessllm-plus", "muxserve")
SLO = wb.slo(ttft_s=10.0, tbt_s=0.1, definition="qos-artifact")
TABLES = ("requests", "iterations", "segments", "timeline", "allocation", "transfers", "turns", "rounds", "host")
LATE_S = 50.0


@pytest.fixture(scope="module")
def trace() -> pl.DataFrame:
    """40 models of 7B, busy for half a minute, on a clock that does not begin at 0."""
    return market_trace(40, 0.4, 30.0, seed=3).requests.with_columns(pl.col("arrival_s") + LATE_S)


def serve(name, trace, **options):
    given = {"cluster": "aegaeon-h800", "models": "llama-2-7b", "trace": trace, "slo": SLO}
    return wb.simulate(name, **{**given, **options})


@pytest.fixture(scope="module")
def runs(trace) -> dict[str, PooledRun]:
    return {name: serve(name, trace) for name in NAMES}


def test_the_names_are_in_the_tables():
    assert tuple(POOL_SYSTEMS) == NAMES
    rows = wb.systems().filter(pl.col("provisioning") == "pool")
    assert tuple(rows["system"]) == NAMES
    assert {one.system for one in POOL_SYSTEMS.values()} <= set(SYSTEMS)
    assert wb.policies().filter(decision="admission")["policy"].to_list() == list(ADMISSIONS)
    assert set(CHANGEABLE) < set(Pooling.model_fields)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_pooling_engines_outcome(name, trace, runs):
    """The same pool put together by hand: six of 16 GPUs for prompts, two hosts where models take turns."""
    system, mine = POOL_SYSTEMS[name], runs[name]
    split = {"prefill": 6, "decode": 10} if name == "aegaeon" else {"prefill": 0, "decode": 16, "nodes": 1}
    if system.variant == "simulator":
        split["memory_bytes"] = 0.8 * 80e9
    pool = pooling_on("aegaeon-h800", system.variant, system=system.system, **split)
    model = pool_model("llama-2-7b", "h800-80gb-sxm", steps="roofline")
    models = dict.fromkeys(trace["model"].unique(maintain_order=True), model)
    theirs = pooled(pool, models, trace).outcome
    for field, value in theirs._asdict().items():
        np.testing.assert_array_equal(value, getattr(mine.served.outcome, field), err_msg=field)


@pytest.mark.parametrize("name", NAMES)
def test_tables_tell_the_same_story(name, trace, runs):
    """Tokens by their own times, by steps and segments, by the request table; requests and GPUs are conserved."""
    run = runs[name]
    tokens, requests, found = run.token_times(), run.requests, run.metrics()
    spans = pl.int_ranges("first_iteration", pl.col("first_iteration") + pl.col("count"), dtype=pl.Int64)
    parts = run.segments.with_columns(iteration=spans).explode("iteration")
    steps = parts.join(run.iterations, on=["instance", "iteration"], suffix="_of_step")
    spread = steps.select(
        "request_id", token=pl.col("first_index") + pl.col("iteration") - pl.col("first_iteration"), time_s="end_s"
    )
    assert spread.sort("request_id", "token").equals(tokens.sort("request_id", "token"))
    each = tokens.group_by("request_id").agg(
        pl.len(), first=pl.col("time_s").min(), last=pl.col("time_s").max(), gap=pl.col("time_s").diff().max()
    )
    joined = requests.join(each, on="request_id")
    assert (joined["first"] == joined["first_token_s"]).all()
    assert (joined["last"] == joined["finish_s"]).all()
    several = joined.filter(pl.col("len") > 1)
    np.testing.assert_allclose(several["gap"], several["tbt_max_s"], atol=1e-9)
    done = requests.filter(status="done")
    assert (done["first_token_s"] > done["arrival_s"]).all()
    assert joined.filter(status="done").select(pl.col("len") == pl.col("output_tokens")).to_series().all()
    assert found["arrived"] == found["done"] + found["failed"] + found["rejected"] + found["inside"] == len(trace)
    assert found["inside"] == 0
    ttft = (done["first_token_s"] - done["arrival_s"]).to_numpy()
    assert found["ttft_mean_s"] == pytest.approx(ttft.mean())
    assert found["ttft_p99_s"] == pytest.approx(np.quantile(ttft, 0.99))
    assert found["attainment"] == found["attainment_qos-artifact"]
    share, weight = run.kept(SLO)
    assert found["attainment"] == pytest.approx((share * weight).sum() / weight.sum())
    held = run.allocation
    spans = np.diff(held["time_s"].to_numpy())
    assert (spans * held["gpus_allocated"].to_numpy()[:-1]).sum() == pytest.approx(found["gpu_allocated_s"])
    assert (held["gpus_active"] <= 16).all()
    assert (held["gpus_active"] >= 0).all()
    assert held["gpus_active"][-1] == 0
    assert found["gpu_active_s"] <= (spans * held["gpus_active"].to_numpy()[:-1]).sum() * (1 + 1e-9)
    assert len(run.transfers) == found["switches"]
    assert requests["arrival_s"].min() >= LATE_S


def test_the_order_of_the_papers_figure_shows(runs):
    """Under load turns keep more of the promise than whole requests do (SOSP'25 Figure 11)."""
    kept = {name: run.metrics()["attainment"] for name, run in runs.items()}
    assert kept["aegaeon"] > kept["serverlessllm@aegaeon"] > 0
    assert runs["muxserve"].metrics()["rejected"] > 0  # two 7B models a GPU are 32, of 40


def test_simpy_gives_the_same_tables(trace):
    few = trace.head(120)
    for name in NAMES:
        one, other = (serve(name, few, backend=backend) for backend in ("compiled", "simpy"))
        for table in TABLES:
            assert getattr(one, table).equals(getattr(other, table)), (name, table)


def test_a_saved_run_comes_back(runs, tmp_path):
    run = runs["aegaeon"]
    loaded = wb.load(run.save(tmp_path / "run"))
    assert isinstance(loaded, PooledRun)
    for table in TABLES:
        assert getattr(loaded, table).equals(getattr(run, table)), table
    assert (loaded.system, loaded.pooling, loaded.slo) == (run.system, run.pooling, run.slo)
    assert loaded.sentence == run.sentence
    assert loaded.metrics() == pytest.approx(run.metrics(), nan_ok=True)
    assert pl.read_parquet(tmp_path / "run" / "requests.parquet").equals(run.requests)
    with pytest.raises(UserError, match="is not a saved run"):
        run.save(tmp_path)


def test_runs_are_compared_request_by_request(runs):
    table = wb.compare(runs["serverlessllm@aegaeon"], runs["aegaeon"]).table
    row = table.filter(measure="attainment_qos-artifact").row(0, named=True)
    assert row["a"] == pytest.approx(runs["serverlessllm@aegaeon"].metrics()["attainment"])
    assert row["b"] == pytest.approx(runs["aegaeon"].metrics()["attainment"])


def test_a_run_shows_itself_and_its_trace(runs, tmp_path, trace):
    run = runs["aegaeon"]
    assert f"served {len(trace):,} of {len(trace):,} requests to 40 models by 16 instances" in run.sentence
    assert "attainment_token" in run._repr_html_()
    assert run.trace.requests["request_id"].equals(run.requests["request_id"])
    events = json.loads(run.chrome_trace(tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event["ph"] == "X" for event in events) == len(run.switches) + len(run.turns)
    with pytest.raises(InputError, match="has 1 ids that the run does not"):
        run.token_times([10**9])


def test_choices_and_admission(trace):
    system = wb.system("aegaeon", quota_s=2.0, variant="artifact")
    assert system.name == "aegaeon, artifact with own quota_s"
    run = serve(system, trace.head(60), policies={"admission": "look-ahead"})
    assert (run.pooling.quota_s, run.pooling.group_rule, run.pooling.admission) == (2.0, "current", "look-ahead")
    assert dict(run.system.choices.select("choice", "value").iter_rows())["quota_s"] == "2.0"
    three = wb.system("aegaeon", prefill=4)
    assert serve(three, trace.head(10)).pooling.decode == 12
    assert serve("aegaeon", trace.head(10), slo=None).notes[0].startswith("No promise was given")
    assert serve("aegaeon", trace.head(10), kv_tokens=4096).served.lowered.models.capacity[0] == 256


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"failures": [1]}, "'failures': names instances that fail, which a pool does not know; leave it out"),
        ({"updates": [1]}, "'updates': names new weights, which a pool does not know"),
        ({"link_failures": [1]}, "'link_failures': names links that fail, which a pool does not know"),
        ({"until_s": 5.0}, "'until_s': stops the clock"),
        ({"deployment": wb.deployment(prefill=(1, 2))}, "'deployment': bounds instances"),
        ({"deployment": wb.deployment(tp=16)}, "'cluster': has room for 1 instance of 16"),
        ({"policies": {"dispatch": "random"}}, "of wb.policies.. a pool takes admission"),
        ({"policies": {"admission": print}}, "'admission': is a function"),
        ({"policies": {"admission": "some"}}, "no admission named 'some'"),
        ({"step": 3}, "'step': is 3, while a pool takes step times by name"),
        ({"backend": "torch"}, "no backend named 'torch'"),
        ({"models": "qwen2.5-72b"}, "does not fit"),
    ],
)
def test_what_a_pool_does_not_know_is_refused_in_one_sentence(options, words, trace):
    with pytest.raises(UserError, match=words) as caught:
        serve("aegaeon", trace.head(10), **options)
    assert "\n" not in str(caught.value)


def test_other_doors_say_so():
    with pytest.raises(UnknownName, match="no choice of a pool named 'quota'"):
        wb.system("aegaeon", quota=1.0)
    with pytest.raises(InputError, match="leave at least"):
        serve(
            wb.system("aegaeon", prefill=16),
            pl.DataFrame({"arrival_s": [0.0], "prompt_tokens": [1], "output_tokens": [1]}),
        )
    with pytest.raises(UserError, match=r"wb\.capacity and wb\.plan do not"):
        wb.capacity("muxserve", cluster="aegaeon-h800", models="llama-2-7b", trace="azure-code-2023-like", slo=SLO)


def test_an_empty_trace_is_a_run_in_which_nothing_happens():
    table = pl.DataFrame(schema={"arrival_s": pl.Float64, "prompt_tokens": pl.Int64, "output_tokens": pl.Int64})
    for name in NAMES:
        run = serve(name, table)
        assert run.sentence.endswith("no requests came.")
        for one in ("requests", "iterations", "segments", "timeline", "transfers"):
            assert getattr(run, one).height == 0
        assert run.metrics()["done"] == 0


def test_the_command_line_serves_and_saves(tmp_path, trace, capsys):
    trace.head(50).write_csv(tmp_path / "mine.csv")
    common = ["--cluster", "aegaeon-h800", "--model", "llama-2-7b", "--slo", "aegaeon", "--out", str(tmp_path / "run")]
    assert main(["simulate", "aegaeon", "--trace", str(tmp_path / "mine.csv"), "--set", "quota_s=2", *common]) == 0
    said = capsys.readouterr().out
    assert "aegaeon with own quota_s on aegaeon-h800 served 50 of 50 requests" in said
    assert "switching_share" in said
    assert wb.load(tmp_path / "run").pooling.quota_s == 2.0
