"""Stops, start-up and detection: arithmetic by hand, and runs that must equal runs without any scaling."""

import polars as pl
import pytest

import workbench as wb
from workbench.catalogue.context import Context
from workbench.catalogue.serving import bursts
from workbench.errors import UserError
from workbench.serving import Scenario, serve

SMALL = {"trace": "azure-code-2023-like", "window_s": 60.0}


def value(result, series, x=""):
    table = result.tables["headline"].filter((pl.col("series") == series) & (pl.col("x") == x))
    return table["value"].item()


def test_stop_times_and_bandwidths_are_bytes_over_accelerators():
    """Qwen2.5-72B holds 145.4 GB: a quarter in half a second is 582 Gbps, at 220 Gbps it takes 1.32 s."""
    result = wb.experiment("blitzscale/fig3").run("analytic")
    assert value(result, "panels a-d: bandwidth per GPU for a 500 ms stop", "72B, TP4") * 8 == pytest.approx(
        145.41e9 / 4 / 0.5 * 8, rel=1e-4
    )
    assert value(result, "panels a-d: stop time at 220 Gbps per GPU", "72B, TP4") == pytest.approx(1.3219, rel=1e-4)


@pytest.mark.parametrize(
    ("model", "share"),
    [("Llama2-7B", 13_000 * 524_288), ("Llama3-8B", 15_000 * 131_072), ("Qwen2.5-72B, TP4", 5_300 * 327_680 / 4)],
)
def test_kv_that_leaves_is_the_prefill_rate_times_bytes_per_token(model, share):
    result = wb.experiment("blitzscale/fig3").run("analytic")
    series = "panels e-f: KV egress at full prefill speed over a 100 Gbps NIC"
    assert value(result, series, model) == pytest.approx(share / 12.5e9, rel=1e-6)


def test_a_start_is_the_engine_and_bytes_over_bandwidth():
    """16.06 GB over PCIe at 12.8 GB/s after half a second; a chain to four is a hop and 67 of 64 blocks."""
    result = wb.experiment("serving/startup-cliff").run("analytic", engine_s=0.5)
    assert value(result, "start-up by host memory") == pytest.approx(0.5 + 16.0605 / 12.8, rel=1e-4)
    chain = 0.5 + 67 * (24e-6 + 16.0605e9 / 64 / 11.75e9)
    assert value(result, "start-up by network, chain to 4") == pytest.approx(chain, rel=1e-3)


@pytest.fixture
def small():
    context = Context("compiled")
    trace = bursts.burst(context, SMALL["trace"], SMALL["window_s"])
    return context, bursts.case(context, "blitzscale-a", "llama-3-8b", 1, (0.45, 0.15), trace, 0.3, 2)


def test_instances_that_never_come_help_nobody(small):
    """A start-up longer than the trace gives what the two first instances give without any autoscaler."""
    context, one = small
    never = bursts.run_case(context, one, 1e6, tick_s=0.1)
    plain = one.group.model_copy(update={"autoscaler": type(one.group.autoscaler)(), "count": 2})
    alone = serve(Scenario(groups=(plain,)), one.table)
    assert len(never.scaleouts) > 0
    assert never.requests["first_token_s"].to_list() == alone.requests["first_token_s"].to_list()


def test_instances_at_once_are_never_later(small):
    context, one = small
    kept = [bursts.kept(bursts.run_case(context, one, load_s, tick_s=0.1), one.slo) for load_s in (0.0, 1e6)]
    assert kept[0]["mean_ttft_s"] < kept[1]["mean_ttft_s"]
    assert kept[0]["both_kept"] > kept[1]["both_kept"]


def test_the_load_is_the_share_that_was_asked_for(small):
    """Prompt tokens a second over what all 32 places prefill, to half a repetition."""
    _, one = small
    rate = one.group.autoscaler.parameters["prompt_tokens_per_s"]
    span = one.table["arrival_s"][-1] - one.table["arrival_s"][0]
    load = one.table["prompt_tokens"].sum() / span / (32 * rate)
    assert load == pytest.approx(0.3, abs=0.6 * 0.3 / one.times)


def test_stale_decisions_hurt():
    result = wb.experiment("serving/detection").run("compiled", quick=True, **SMALL)
    table = result.tables["kept"].filter(pl.col("load_s") == 0.1).sort("detect_s")
    assert table["mean_ttft_s"][0] < table["mean_ttft_s"][-1]


def test_more_instances_than_places_are_refused():
    with pytest.raises(UserError, match="which has 16 places"):
        wb.experiment("serving/startup-cliff").run("compiled", least=32, tp=2, **SMALL)
