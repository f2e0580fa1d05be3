"""BlitzScale's evaluation: what is told of runs, and what holds in each of them."""

import numpy as np
import polars as pl
import pytest
from operating_cases import SECOND, quarters, table
from quick_runs import alone, tables_of

import workbench as wb
from workbench.catalogue.blitzscale import evaluating
from workbench.catalogue.blitzscale.evaluating import (
    ALWAYS,
    ANYBODY,
    BLITZ,
    CACHED,
    CARDS,
    CODE,
    CONV,
    DECODE_FIRST,
    DOWN,
    FULL,
    HALF,
    HOST,
    MULTICAST,
    NETWORK,
    PROMISES,
    SLLM,
    UP,
    Served,
    changes_of,
    largest,
    made,
    prepared,
    serve,
    trace_of,
)
from workbench.catalogue.blitzscale.fig22 import WITH, WITHOUT
from workbench.catalogue.blitzscale.telling import TBT, TTFT, latencies, told, violated, weight_shares
from workbench.catalogue.context import Context
from workbench.operating import System
from workbench.serving.policy.scalers import TIERS_BY_NUMBER


@pytest.fixture(scope="module")
def served():
    """Every system on a window of AzureConv, or of its stand-in."""
    context = Context("compiled", "quick", 0)
    hosts, trace = prepared(context, CONV, 0.5, PROMISES, 300.0)
    return {name: serve(context, CONV, hosts, name, trace) for name in (BLITZ, MULTICAST, NETWORK, SLLM, CACHED, FULL)}


@pytest.fixture(scope="module")
def counted():
    """Two prompts at once, and an instance that is detected at 1 s and alone at 3 s (see test_roles_apart)."""
    system = System(
        name="apart", roles="apart", provisioning="least", path="chains", autoscaler="concurrency:requests=1",
        near=False, keep_s=0.0,
    )  # fmt: skip
    run = wb.simulate(
        system, cluster=quarters(), models="llama-3-8b", step=SECOND, kv_tokens=4096, backend="simpy",
        trace=table((0.0, 8, 4), (0.0, 8, 4)), deployment=wb.deployment(prefill=(1, 2), decode=(1, 1)),
    )  # fmt: skip
    return Served(CONV, "apart", run)


def test_times_of_a_start_by_hand(counted):
    row = told([counted])["totals"].row(0, named=True)
    assert (row["starts"], row["detected_s"], row["alone_s"]) == (1.0, 0.0, 2.0)
    assert row["extra_s"] <= row["alone_s"]


def test_gaps_are_those_between_tokens(counted):
    """Eight tokens of two requests make six gaps; each is as the tokens' own times say."""
    tokens = counted.run.token_times().sort("request_id", "token")
    gaps = tokens.select(pl.col("time_s").diff().over("request_id")).drop_nulls()["time_s"]
    assert sorted(latencies(counted)[TBT]) == pytest.approx(sorted(gaps))
    assert len(gaps) == 6


def test_every_second_tells_its_requests(served):
    """All of the window's requests, and none in seconds without any."""
    over = told([served[FULL]])["over"]
    arrival = served[FULL].run.requests["arrival_s"]
    assert over["time_s"].to_list() == list(range(int(arrival.max() - arrival.min()) + 1))
    assert over["requests"].sum() == len(arrival)
    assert over.filter(requests=0)["TTFT"].null_count() == over.filter(requests=0).height


def test_five_times_the_average_by_hand(counted):
    """No latency of two is above five times the mean of both; against a run in which all is quick, each is."""
    assert violated(counted, counted) == 0.0
    quick = counted.run.requests.with_columns(pl.col("arrival_s") + (pl.col("first_token_s") - 1e-3))
    other = counted.run.model_copy()
    other.__dict__["requests"] = quick
    assert violated(counted, Served(CONV, "quick", other)) == 1.0


def test_gpu_time_is_the_integral_of_what_is_held(served):
    for one in served.values():
        held = one.run.allocation.group_by("time_s").agg(pl.col("gpus_allocated").sum()).sort("time_s")
        seconds = np.diff(held["time_s"].to_numpy())
        assert one.run.gpu_allocated_s == pytest.approx(float((held["gpus_allocated"][:-1] * seconds).sum()), rel=1e-9)


@pytest.mark.parametrize("name", [BLITZ, MULTICAST])
def test_no_instance_that_computes_prompts_sends_weights_while_one_decodes(served, name):
    """Instances that decode are there all the time in these runs, so that no other row is ever a source."""
    run = served[name].run
    roles = np.array([run.scenario.groups[group].role for group in run.scenario.row_groups])
    sources = run.served.outcome.chains[:, 4].astype(np.int64)
    assert sources.size
    instances = sources[sources < roles.size]
    assert set(roles[instances]) <= {"decode"}


@pytest.mark.parametrize("name", [BLITZ, MULTICAST, NETWORK])
def test_hosts_keep_one_copy_of_a_model_together(served, name):
    """Whatever leaves a host's memory leaves that of the first one, and nothing is read from an SSD."""
    run = served[name].run
    sources = run.served.outcome.chains[:, 4].astype(np.int64)
    assert set(sources[sources >= len(run.scenario.row_groups)]) <= {len(run.scenario.row_groups)}
    loads = run.served.outcome.loads
    tiers = [TIERS_BY_NUMBER[int(tier)] for tier in loads[:, 3]]
    hosts = run.served.lowered.scaling.host[loads[:, 2].astype(np.int64)]
    assert {int(host) for host, tier in zip(hosts, tiers, strict=True) if tier == "dram"} <= {0}
    assert "ssd" not in tiers
    weights = run.scenario.groups[0].start_up.weights
    assert (weights.pinned, run.scenario.pool.cache_bytes) == (1, 0.0)


def test_the_network_alone_forms_no_chains(served):
    """+Network sends each instance its weights by itself; +Multicast passes them on."""
    out = served[NETWORK].run.served.outcome
    assert np.bincount(out.hops[:, 0].astype(int)).max() == 1
    assert np.unique(out.chains[:, 3]).size == len(out.chains)
    most = {name: served[name].run.served.lowered.scaling.chains for name in (NETWORK, MULTICAST)}
    assert (most[NETWORK] == 0).all()
    assert (most[MULTICAST] > 1).all()


def test_readings_change_only_who_they_are_about():
    """Senders are BlitzScale's and +Multicast's, links inside hosts those of all that use the network."""
    assert changes_of(BLITZ, ANYBODY, CARDS) == {"near": False, "decode_first": False}
    assert changes_of(BLITZ, ANYBODY, CARDS, ALWAYS) == {"near": False, "decode_first": False, "live": "always"}
    assert changes_of(MULTICAST, DECODE_FIRST, HOST) == {"near": True, "decode_first": True}
    assert changes_of(NETWORK, ANYBODY, CARDS) == {"near": False}
    assert changes_of(SLLM, ANYBODY, CARDS) == {}
    there = CODE._replace(decode_least=CODE.full[1])
    least = {name: there.deployment(name, UP).decode for name in (BLITZ, SLLM, FULL)}
    assert least == {BLITZ: (6, 14), SLLM: (2, 14), FULL: (1, 6)}


def test_without_scaling_the_network_carries_kv_only():
    """What BlitzScale adds are its weights; the same requests bring as much KV with and without."""
    tables = wb.experiment("blitzscale/fig22").run(quick=True, workloads=(CONV.name,)).tables
    share = {row["system"]: row for row in tables["shares"].to_dicts()}
    assert share[WITHOUT]["weights"] == 0 < share[WITH]["weights"]
    rows = tables["totals"].select("system", "done").rows()
    assert len({done for _, done in rows}) == 1
    assert share[WITHOUT]["kv"] == pytest.approx(share[WITH]["kv"], rel=0.3)  # over spans that end at another time


def test_all_serve_the_same_requests_by_one_policy(served):
    first = served[BLITZ].run
    rule = first.scenario.groups[0].autoscaler
    for name, one in served.items():
        assert one.run.requests["status"].unique().to_list() == ["done"]
        assert one.run.requests["arrival_s"].equals(first.requests["arrival_s"])
        if name != FULL:
            assert one.run.scenario.groups[0].autoscaler == rule


def test_shares_of_the_network_by_hand(counted):
    """One copy of the weights goes over a card that carries half of them a second, among four cards."""
    span_s = counted.run.allocation["time_s"].max()
    assert weight_shares(counted)["weights"] == pytest.approx(2.0 / (4 * span_s))


@pytest.mark.parametrize("name", [BLITZ, NETWORK])
def test_both_engines_agree_bit_for_bit(name):
    runs = []
    for backend in ("compiled", "simpy"):
        context = Context(backend, "quick", 1)
        hosts, trace = prepared(context, CONV, 0.5, PROMISES, 120.0)
        runs.append(serve(context, CONV, hosts, name, trace).run)
    one, other = runs
    assert one.requests.equals(other.requests)
    assert np.array_equal(one.served.outcome.chains, other.served.outcome.chains, equal_nan=True)
    assert one.scaleouts.height


def test_half_of_the_instances_up_or_down():
    """5 + 3 are 3 + 2, or 2 + 1."""
    counts = {half: CONV.deployment(HALF, half) for half in (UP, DOWN)}
    half = {name: [-(-most[1] // 2) for most in (one.prefill, one.decode)] for name, one in counts.items()}
    assert half == {UP: [3, 2], DOWN: [2, 1]}
    assert made(HALF, 0.0).provisioning == "half"


def test_the_load_is_a_share_of_the_largest():
    """By prompts: ten instances of 15,000 tokens a second, over the mean prompt; stamps are repeated to half of it."""
    context = Context("compiled", "full", 3)
    hosts, trace = prepared(context, CODE, 0.5, "prompt rate", 600.0)
    whole = trace_of(context, CODE)
    mean = whole.requests["prompt_tokens"].mean()
    rate = 10 * 15_000 / mean
    assert largest(context, CODE, hosts, whole, "prompt rate") == pytest.approx(rate, rel=0.02)
    times = trace.requests.group_by("arrival_s").len()["len"].min()
    own = (len(whole) - 1) / (whole.requests["arrival_s"][-1] - whole.requests["arrival_s"][0])
    assert times * own == pytest.approx(rate / 2, rel=0.06)
    assert (trace.requests["prompt_tokens"] + trace.requests["output_tokens"]).max() <= 4095


@pytest.mark.parametrize("id", ["fig18"])
def test_first_tokens_come_from_the_engine(id, monkeypatch):
    """An engine whose first tokens come an hour later shows in every TTFT that is told."""
    before = alone(f"blitzscale/{id}", "compiled").tables["headline"]
    true = evaluating.simulate

    def late(*args, **options):
        run = true(*args, **options)
        outcome = run.served.outcome
        later = run.served.model_copy(update={"outcome": outcome._replace(first_token_s=outcome.first_token_s + 3600)})
        return run.model_copy(update={"served": later})

    monkeypatch.setattr(evaluating, "simulate", late)
    monkeypatch.setattr(evaluating, "_SERVED", {})
    after = tables_of(f"blitzscale/{id}", "compiled")["headline"]
    told_ = [(pl.col("unit") == "s") & pl.col("series").str.starts_with(f"{TTFT}, ")]
    one, other = (table_.filter(*told_)["value"].to_list() for table_ in (before, after))
    assert one
    assert other == pytest.approx([value + 3600 for value in one])


def test_a_start_by_hand():
    """16.06 GB at 10 Gbps after 0.6 s of context and group, or at 100 Gbps after nothing; 2,000 tokens at 15,000/s."""
    parts = wb.experiment("blitzscale/fig23").run("analytic").tables["parts"]
    total = dict(parts.group_by("system").agg(pl.col("seconds").sum()).iter_rows())
    size = 8.03026e9 * 2
    first_s = 2000 / 15_000
    assert total["vLLM"] == pytest.approx(0.6 + size / 1.25e9 + first_s, rel=2e-3)
    assert total["BlitzScale"] == pytest.approx(size / 12.5e9 + first_s, rel=2e-3)


def test_a_real_start_is_told_part_by_part(monkeypatch):
    """Of two starts that are given: what agrees with the formula, what dominates, and what has no answer here."""
    given = {False: (1.0, 2.0, 0.5, 0.03, 12.9, 0.14), True: (0.001, 1.3, 0.14)}
    names = ("process", "import of torch", "engine", "group", "weights", "first token")

    def measured(load_s, first_s, *, beforehand, **_):
        parts = (names[0], *names[4:]) if beforehand else names
        table = pl.DataFrame({"part": parts, "seconds": given[beforehand]})
        return real.RealStart(parts=table, weight_bytes=1000)

    real = pytest.importorskip("workbench.scaling.real")
    monkeypatch.setattr(real, "measure_start", measured)
    outcome = wb.experiment("blitzscale/fig23").run(("analytic", "torch")).outcome
    told_ = outcome.tables["headline"].filter(backend="torch", series="start-up time")
    assert dict(told_.select("x", "value").iter_rows()) == pytest.approx({"vLLM": 16.57, "BlitzScale": 1.441})
    assert [one.agrees for one in outcome.agreement] == [True]
    found = {one.claim: (one.verdict, one.ours) for one in outcome.verdicts if one.claim.endswith("real run")}
    assert found == {
        "data plane dominates BlitzScale's start, real run": ("reproduced", "90%"),
        "CUDA context with kernels, real run": ("not comparable", "3.5 s"),
        "NCCL group set-up, real run": ("not comparable", "0.03 s"),
        "NVLink broadcast of Llama3-8B to 8 GPUs, real run": ("not comparable", ""),
    }


def test_both_phases_on_the_same_instances():
    """All instances all the time, or as few as the rule wants: the same requests, all of them served."""
    result = wb.experiment("blitzscale/fig24").run(quick=True)
    rows = {row["system"]: row for row in result.tables["totals"].to_dicts()}
    assert len({row["done"] for row in rows.values()}) == 1
    assert rows["vLLM, over-provisioned"]["held"] == 1.0
    assert rows[BLITZ]["held"] < 1.0
    assert rows[BLITZ]["starts"] > 0


def test_a_gain_is_told_from_the_runs(monkeypatch):
    """Where both systems are one, nothing is gained."""
    monkeypatch.setitem(evaluating.NAMES, SLLM, "blitzscale")
    monkeypatch.setattr(evaluating, "_SERVED", {})
    found = tables_of("blitzscale/cross", "compiled", models="8B", traces="AzureConv", clusters="B")["cross"]
    assert found.select("TTFT", "TBT", "gpu_time").rows() == [(0.0, 0.0, 0.0)]


@pytest.mark.parametrize(("gap_s", "missed"), [(200, {30: 7, 150: 7, 200: 0, 300: 0}), (20, {30: 0})])
def test_a_second_burst_by_hand(gap_s, missed):
    """Seven of eight instances start anew; they miss where the pause of the first burst's weights was longer."""
    tables = wb.experiment("blitzscale/o1-caching").run("simpy", gap_s=gap_s, burst_s=5).tables
    found = dict(tables["misses"].select("keep_s", "missed").iter_rows())
    assert {keep: found[keep] for keep in missed} == missed
    size = wb.model("llama-3-8b").weight_bytes
    assert tables["bytes"]["bytes"].to_list() == [8 * size, 8 * size, 8 * size, 16 * size]
