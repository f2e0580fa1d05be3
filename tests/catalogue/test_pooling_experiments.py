"""Numbers of the experiments on pooling: golden values, orders, and that simulated ones come from the simulator."""

import sys

import polars as pl
import pytest
from pooling_cases import case
from quick_runs import tables_of

import workbench as wb
from workbench.catalogue import running, spec
from workbench.catalogue.aegaeon.operator import BACK, OUT, slack_of_turns
from workbench.catalogue.aegaeon.pools import crossing
from workbench.figures.pooling_sweeps import averaged
from workbench.pooling.model import PoolRun, run_compiled
from workbench.pooling.model.lowered import Outcome

POOLS = [id for id in spec.all_specs() if id.startswith("aegaeon/") and id != "aegaeon/fig4"]
SIMULATED = [id for id in POOLS if "simpy" in spec.find(id).backends]
HOUR_S = 3600.0


def later(run: Outcome) -> Outcome:
    """The same run, everything an hour later and twice as long."""
    instants = {name: getattr(run, name) + HOUR_S for name in ("first_token_s", "finish_s", "token_s", "wait_s")}
    switches, turns = run.switches.copy(), run.turns.copy()
    switches[:, 1] += HOUR_S
    turns[:, 2] += HOUR_S
    spans = {name: 2 * getattr(run, name) + 1.0 for name in ("prefill_s", "decode_s", "waited_s")}
    host = run.host * [2.0, 1.0, 1.0, 1.0, 1.0]
    return run._replace(**instants, **spans, switches=switches, turns=turns, host=host)


@pytest.mark.parametrize("id", SIMULATED)
def test_what_is_labelled_simulated_comes_from_the_simulator(id, monkeypatch):
    before = tables_of(id, "simpy")
    for module in [m for name, m in sys.modules.items() if name.startswith("workbench.catalogue.aegaeon.")]:
        for name in ("simulate", "simulate_colocated"):
            if hasattr(module, name):
                true = getattr(module, name)
                monkeypatch.setattr(module, name, lambda *given, true=true: later(true(*given)))
    after = tables_of(id, "simpy")
    assert set(before) == set(after)
    for name, table in before.items():
        assert not table.equals(after[name]), name


@pytest.mark.parametrize(
    ("values", "place"),
    [((1.0, 0.95, 0.85), 25.0), ((0.8, 0.7, 0.6), 5.0), ((1.0, 1.0, 0.9), None), ((0.9, 0.9, 0.0), 20.0)],
)
def test_where_a_curve_falls_below_90_percent(values, place):
    """At 10, 20 and 30, from 1 at 0; linear in between."""
    found = crossing((10, 20, 30), values)
    assert (found != found) if place is None else found == pytest.approx(place)


def test_the_quota_example():
    table = wb.experiment("aegaeon/quota-example").run().tables["rounds"]
    by = {row["cap_s"]: row for row in table.to_dicts()}
    assert (by[3.0]["pace"], by[3.0]["quota_s"], by[3.0]["length_s"], by[3.0]["tokens"]) == (1.0, 3.0, 12.0, 120.0)
    assert (by[4.0]["pace"], by[4.0]["quota_s"], by[4.0]["length_s"], by[4.0]["tokens"]) == (0.9375, 4.0, 15.0, 160.0)


def test_the_least_time_to_load_13b_and_the_example_of_the_metric():
    """§4.2: 26 GB / 32 GB/s = 0.8125 s; the comment in the artifact's code: 5/8."""
    for id in ("aegaeon/load-time", "aegaeon/fig3", "aegaeon/tab1"):
        verdicts = wb.experiment(id).run().verdicts()
        assert set(verdicts["verdict"]) <= {"reproduced", "computed"}, id
    headline = wb.experiment("aegaeon/load-time").run().tables["headline"]
    assert headline["value"][0] == 0.8125


def test_the_four_definitions_on_the_example():
    """Token times 3, 6, 7, 8 against 3, 5, 7, 9: three of four in time; 3 s and 2 of 5 s kept, or with the target reset
    to 2 s after the miss: 3 and min(4, 2) too; mean gap 5/3 is within 2, so the request keeps both."""
    table = wb.experiment("aegaeon/fig3").run().tables["stalls"]
    found = dict(
        table.filter(pl.col("case") == "the artifact's example").select("definition", "attainment").iter_rows()
    )
    assert found == {"qos-artifact": 0.625, "qos-reset": 0.625, "token": 0.75, "request": 1.0}


@pytest.mark.parametrize("seed", range(3))
def test_no_admitted_request_misses_its_promise(seed):
    """With exact lengths, at every load and for seeds that were not chosen."""
    table = wb.experiment("aegaeon/admission").run("compiled", quick=True, seed=100 + seed).tables["loads"]
    look = table.filter(pl.col("rule") == "look-ahead")
    assert look["broken_requests"].to_list() == [0] * len(look)
    assert look["of_feasible"].min() >= 0.5
    free = table.filter(pl.col("rule") == "everybody")
    assert (look["kept"] >= free["kept"] - 1e-12).all()
    assert free["broken_requests"].max() > 0


def test_slack_of_a_batch_by_hand():
    """One request: its first token at 1.1 s, a load of 1 s behind it, then steps of 10 ms, a token read every 0.1 s.

    It holds 0.1 s when the switch begins, is 0.9 s late when the model is there, and earns 90 ms a step; each
    turn begins where the one before it ended, and who has all tokens is no longer late.
    """
    lowered = case([(0.0, 0, 100, 50)])
    slack = slack_of_turns(
        PoolRun(asked=pl.DataFrame(), lowered=lowered, outcome=run_compiled(lowered), models=("0",)), 0.1
    )
    assert slack[0, :2] == pytest.approx([0.1, -0.9], abs=1e-4)
    steps = (slack[:, 2] - slack[:, 1]) / 0.09
    assert steps[:-1] == pytest.approx(steps[:-1].round(), abs=1e-3)
    assert steps.sum() == pytest.approx(49, abs=1e-3)
    assert slack[1:, 0] == pytest.approx(slack[:-1, 2], abs=1e-4)


def test_what_an_operator_sees_adds_up():
    """Bytes by the run's own counts: all KV caches that came to a host left it, and none is there at the end."""
    tables = tables_of("aegaeon/operator", "compiled", models=12)
    moved, host = tables["moved"], tables["host"]
    assert moved[OUT][-1] == moved[BACK][-1] > 0
    held = host.group_by("time_s", maintain_order=True).agg(pl.col("bytes").sum())["bytes"]
    assert held.to_list() == pytest.approx((moved[OUT] - moved[BACK]).to_list())
    assert held[-1] == 0
    sizes = tables["switches"]["size"].unique(maintain_order=True).to_list()
    assert len(sizes) == 3  # 7B, 9B and 13B
    longest = tables["switches"].group_by("size", maintain_order=True).agg(pl.col("seconds").max())
    for size, seconds in longest.iter_rows():  # at least bytes over 0.625 of 64 GB/s, where nothing was fetched ahead
        assert seconds >= float(size.split()[0]) / 40 * (1 - 1e-3)
    assert tables["slack"].filter(quantile=0.0)["seconds"].is_finite().all()


def test_pooling_beats_whole_requests_and_a_formula_bounds_it():
    """Figure 11a at 64 models: Aegaeon above ServerlessLLM above ServerlessLLM+; the pace alone allows no less."""
    result = wb.experiment("aegaeon/fig11").run(("compiled", "analytic"), quick=True, seed=5)
    table = result.tables["curve"].filter((pl.col("panel") == "a") & (pl.col("x") == 64))
    at = dict(table.select("label", "qos-artifact").iter_rows())
    assert at["Aegaeon"] > at["ServerlessLLM"] > at["ServerlessLLM+"]
    assert at["Aegaeon, pace alone"] >= at["Aegaeon"]
    realised = dict(result.tables["realised"].select("x", "share").iter_rows())
    assert realised["0.1 per s, 60 s"] == pytest.approx(0.839, abs=0.05)  # E min(N, 6) / 6, N Poisson with mean 6


def test_a_pool_of_a_users_own_trace(tmp_path):
    """Two models take turns being asked; one GPU each, or a pool of two."""
    rows = "".join(f"{0.5 * k},m{k % 2},200,50\n" for k in range(80))
    path = tmp_path / "mine.csv"
    path.write_text("arrival_s,model,prompt_tokens,output_tokens\n" + rows)
    result = wb.experiment("aegaeon/split").run(trace=str(path))
    table = result.tables["cuts"]
    assert table["models"].unique().to_list() == [2]
    ends = {row["dedicated"]: row["gpus"] for row in table.to_dicts()}
    assert ends[2] == 2
    assert ends[0] >= 2


def test_figures_11_to_13_are_of_five_seeds_with_bands():
    """A full run makes as many by itself, a quick one a single one; each place has its smallest and largest."""
    for id in ("aegaeon/fig11", "aegaeon/fig12", "aegaeon/fig13"):
        entry = spec.find(id)
        assert (running.usual_replications(entry, True), running.usual_replications(entry, False)) == (1, 5)
        assert "definitions" in entry.panels
    result = wb.experiment("aegaeon/fig13").run("simpy")
    assert len(set(result.outcome.seeds)) == 5
    table = result.tables["curve"]
    assert table["replication"].unique().sort().to_list() == [0, 1, 2, 3, 4]
    one = table.filter((pl.col("label") == "Aegaeon") & (pl.col("x") == 20))
    band = averaged(one, "x", "request").row(0, named=True)
    values = one["request"].to_list()
    assert (band["y"], band["low"], band["high"]) == (pytest.approx(sum(values) / 5), min(values), max(values))
    drawn = {trace["name"] for trace in result.figure("definitions").to_dict()["data"]}
    assert drawn == {f"{name} (simulation)" for name in ("qos-artifact", "qos-reset", "token", "request")}
