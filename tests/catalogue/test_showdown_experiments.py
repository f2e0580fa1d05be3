"""Systems of several papers on one question."""

from importlib import import_module

import polars as pl
import pytest
from quick_runs import alone, tables_of

from workbench.catalogue import running, spec
from workbench.catalogue.showdown import common
from workbench.figures import draw

BURST = "showdown/burst"
WEIGHTS = 16_060_522_496
"""Bytes of Llama 3 8B at two bytes a parameter: 8,030,261,248 parameters."""


def test_all_systems_have_one_engine_router_and_autoscaler():
    made = [common.levelled(name) for name in common.SYSTEMS]
    for field, value in common.ONE_FOR_ALL.items():
        assert {repr(getattr(one, field)) for one in made} == {repr(value)}, field
    assert len({str(one.autoscaler) for one in made}) == 1


def test_differences_are_paired_by_seed():
    """By hand: 1, 3 against 2, 6 differ by 1 and 3: 2 on average; Student's factor for two values is 12.706."""
    table = pl.DataFrame({"system": ["a", "a", "b", "b"], "seed": [0, 1, 0, 1], "y": [1.0, 3.0, 2.0, 6.0]})
    row = common.paired(table, ("y",), "a").row(1, named=True)
    assert (row["mean"], row["difference"]) == (4.0, 2.0)
    assert row["difference_low"] == pytest.approx(2 - 12.7062, abs=1e-3)
    assert common.paired(table, ("y",), "a").row(0, named=True)["difference_high"] == 0


@pytest.fixture(scope="module")
def burst():
    return alone(BURST, "compiled").tables


def test_starts_by_hand(burst):
    """Bytes over 12.8 GB/s of PCIe, 1.25 GB/s of an SSD, 160 GB/s of NVLink and 11.75 GB/s of a card."""
    rates = {"dram": 12.8e9, "ssd": 1.25e9, "near": 160e9, "chain": 11.75e9}
    seen = set()
    for row in burst["starts"].to_dicts():
        if row["way"] in rates:
            seen.add(row["way"])
            assert row["seconds"] == pytest.approx(WEIGHTS / rates[row["way"]], rel=1e-9), row
    assert seen == set(rates)


def test_no_weights_come_from_inside_a_host_that_has_one_accelerator():
    for cluster, inside in (("blitzscale-a", True), ("lambdascale-testbed1", False)):
        starts = tables_of(BURST, "analytic", cluster=cluster)["starts"]
        assert ("near" in set(starts["way"])) is inside


def test_requests_bytes_and_copies_of_the_burst(burst):
    rows = {row["system"]: row for row in burst["runs"].to_dicts()}
    assert list(rows) == list(common.SYSTEMS)
    for row in rows.values():
        assert row["done"] == row["requests"] == rows[common.IDEAL]["requests"]
        assert row["gpu_active_s"] <= row["gpu_allocated_s"]
        assert row["weight_bytes"] == (0 if row["system"] == common.IDEAL else row["loads"] * WEIGHTS)
    copies = {name: row["host_copies"] for name, row in rows.items()}
    assert (copies[common.BLITZ], copies[common.ALLCACHE], copies[common.NCCL], copies[common.IDEAL]) == (1, 4, 0, 0)


def test_the_ideal_is_never_beaten_where_all_want_the_same_instances():
    """By the rule of arrivals no start changes what is asked for, so that starting at once is best."""
    table = tables_of(BURST, "compiled", rule="rate")["runs"]
    means = dict(table.select("system", "ttft_mean_s").rows())
    assert min(means, key=means.get) == common.IDEAL
    assert means[common.BLITZ] < means[common.ALLCACHE] < means[common.SLLM]


def test_the_burst_comes_from_the_simulator(burst, monkeypatch):
    """A simulator whose first tokens come an hour later shows in TTFT."""
    module = import_module("workbench.serving.simulated.run")
    true = module.simulate

    def later(lowered, *rest):
        run = true(lowered, *rest)
        return run._replace(first_token_s=run.first_token_s + 3600.0, finish_s=run.finish_s + 3600.0)

    monkeypatch.setattr(module, "simulate", later)
    monkeypatch.setattr(common, "SYSTEMS", {"ideal": "ideal"})
    monkeypatch.setattr(import_module("workbench.catalogue.showdown.burst"), "SYSTEMS", {"ideal": "ideal"})
    after = tables_of(BURST, "simpy")["runs"].row(0, named=True)
    assert after["ttft_mean_s"] == pytest.approx(burst["runs"]["ttft_mean_s"][0] + 3600)


LEAST_BURST = {"calm_per_s": 0.1, "burst_per_s": 1.0, "burst_s": 1.0, "output_tokens": 2, "seeds": 2}
MOST_BURST = {"calm_per_s": 20.0, "burst_per_s": 60.0, "prompt_tokens": 4096, "ttft_s": 30.0}


@pytest.mark.parametrize("ends", [LEAST_BURST, MOST_BURST], ids=["least", "most"])
def test_the_burst_is_drawn_with_sliders_at_their_ends(ends):
    """A burst that starts no instance has no times of scale-outs; the figure leaves them out."""
    outcome = running.run(spec.find(BURST), ends, backends="compiled", quick=True)
    assert outcome.sentence.endswith(".")
    assert draw(outcome).to_dict()["data"]


SAVINGS = "showdown/savings"


def test_savings_break_even_by_hand():
    """35,064 USD over four years of 8,766 hours are 1 USD/h; 1 kW at 0.1 USD/kWh is 0.1 USD/h at work, idle 0.02."""
    money = {"price": 35_064.0, "life_years": 4.0, "busy_w": 1000.0, "idle_w": 200.0, "overhead": 1.0}
    money |= {"usd_per_kwh": 0.1, "rent": 2.0, "tokens_per_gpu_s": 1000.0}
    fleet = {"models": 2, "calm": 1, "peak": 3, "burst_share": 0.5, "spare_hosts": 1, "host_gpus": 4}
    tables = tables_of(SAVINGS, "analytic", correlation=1.0, short_share=0.2, **money, **fleet)
    row = tables["saved"].filter(pl.col("correlation") == 1).row(0, named=True)
    # Half of the time 2 GPUs are needed, half of it 6: 4 on average; with too few in a fifth of it at most, 6 and 4
    # spare ones are bought, as for all peaks.
    assert row["gpu_s_per_hour"] == pytest.approx(4 * 3600)
    assert (row["gpus_to_buy"], row["gpus_saved"], row["time_saved"]) == (10, 0.0, pytest.approx(1 / 3))
    assert row["break_even"] == pytest.approx((1 + 0.02) / (2 - 0.1 + 0.02))
    paid = dict(tables["paid"].filter(pl.col("correlation") == 1).select("way", "usd_per_hour").rows())
    assert list(paid.values()) == pytest.approx([10 + 4 * 0.1 + 6 * 0.02] * 2 + [8.0])
    million = tables["paid"].filter(pl.col("correlation") == 1)["usd_per_million"][2]
    assert million == pytest.approx(8.0 / 14.4)


def test_gpus_to_buy_are_counted_out_for_independent_bursts():
    """Three models, a tenth of the time in bursts: none in 0.729, one at most in 0.972, two at most in 0.999 of it."""
    fleet = {"models": 3, "calm": 0, "peak": 5, "burst_share": 0.1, "spare_hosts": 0}
    for short, want in ((0.1, 5), (0.02, 10), (0.0005, 15)):
        table = tables_of(SAVINGS, "analytic", short_share=short, **fleet)["saved"]
        assert table.filter(pl.col("correlation") == 0)["gpus_to_buy"][0] == want


def test_correlation_takes_gpus_and_leaves_gpu_time():
    table = tables_of(SAVINGS, "analytic")["saved"].sort("correlation")
    assert table["time_saved"].n_unique() == 1
    assert table["gpus_saved"].is_sorted(descending=True)
    assert table["gpus_saved"][-1] == 0


def test_simulated_savings_come_from_the_coins():
    """Long throws agree with the formula; a fleet that is always in bursts needs all of its peaks."""
    table = tables_of(SAVINGS, "simpy", burst_share=0.95, models=1, calm=0, peak=2, spare_hosts=0)["saved"]
    assert table["gpus_to_buy"].to_list() == [2] * len(table)
    assert table["gpu_s_per_hour"].to_list() == pytest.approx([0.95 * 2 * 3600] * len(table), rel=0.03)


POOL = "showdown/pool"


@pytest.fixture(scope="module")
def pools_run():
    return alone(POOL, "compiled").tables["pools"]


def test_requests_to_pools_are_conserved_and_the_same_for_all(pools_run):
    for row in pools_run.to_dicts():
        assert row["done"] + row["rejected"] + row["failed"] == row["arrived"], row
        assert row["gpu_active_s"] <= row["gpu_allocated_s"]
    assert (pools_run.group_by("models").agg(pl.col("arrived").n_unique())["arrived"] == 1).all()


def test_dedicated_gpus_keep_most_promises_and_cost_most(pools_run):
    for (count,), part in pools_run.group_by("models"):
        rows = {row["system"]: row for row in part.to_dicts()}
        assert rows["dedicated"]["attainment"] == part["attainment"].max()
        assert rows["dedicated"]["gpus"] == count
        assert rows["dedicated"]["switches"] == rows["MuxServe"]["switches"] == 0
        assert rows["Aegaeon"]["gpus"] == rows["ServerlessLLM"]["gpus"] == 16


def test_active_models_by_hand(monkeypatch):
    """Equal models that a request keeps for 2 s: of 8 asked every 10 s each, 8 (1 - exp(-0.2)) are active."""
    module = import_module("workbench.catalogue.showdown.pool")
    monkeypatch.setattr(module, "alone_s", lambda models, trace: [2.0] * len(models))
    table = tables_of(POOL, "analytic", tail=0.0, rate_per_s=0.1, most=8)["active"]
    assert table.filter(pl.col("models") == 8)["mean_active"][0] == pytest.approx(8 * (1 - 2.718281828**-0.2))


TWO_BURSTS = "showdown/two-bursts"


def test_two_bursts_by_hand():
    """A chain alone takes T = 16.06 GB / 11.75 GB/s x (128 + 3) / 128; 0.5 s later another one begins."""
    alone_s = WEIGHTS / 11.75e9 * 131 / 128
    for backend, slack in (("analytic", 1e-9), ("simpy", 0.03)):
        table = tables_of(TWO_BURSTS, backend)["waits"].filter(pl.col("gap_s") == 0.5)
        waits = {(row["case"], row["way"], row["burst"]): row["seconds"] for row in table.to_dicts()}
        both = 2 * alone_s - 0.5
        for case in ("two models", "one model"):
            want = {"at once": (both, both), "in turn": (alone_s, both)}
            want |= {"behind the tail": (alone_s, alone_s)} if case == "one model" else {}
            for way, times in want.items():
                got = [waits[case, way, burst] for burst in ("first", "second")]
                assert got == pytest.approx(times, rel=slack), (backend, case, way)


def test_bursts_that_are_far_apart_do_not_meet():
    table = tables_of(TWO_BURSTS, "simpy", gap_s=5.0)["waits"].filter(pl.col("gap_s") == 5)
    assert table["seconds"].max() == pytest.approx(WEIGHTS / 11.75e9 * 131 / 128, rel=1e-6)


MULTICAST = "showdown/pool-multicast"


def test_a_switch_by_chain_by_hand():
    """One receiver, two blocks: both come over the network, each goes on over PCIe while the next one comes."""
    given = {"schedule": "chain", "receivers": 1, "blocks": 2, "nic_bytes_per_s": 10e9, "store_bytes_per_s": 1e9}
    for backend in ("analytic", "simpy"):
        tables = tables_of(MULTICAST, backend, most=8, **given)
        seconds = dict(tables["switch"].filter(pl.col("hosts") == 1).select("source", "seconds").rows())
        size, over_pcie_s = seconds["remote store"] * 1e9, seconds["host memory"]
        want = size / 10e9 + over_pcie_s / 2 if over_pcie_s < size / 10e9 else size / 2 / 10e9 + over_pcie_s
        assert seconds["multicast"] == pytest.approx(want)


def test_faster_sources_keep_more_promises():
    table = alone(MULTICAST, "compiled").tables["pools"]
    for row in table.to_dicts():
        assert row["done"] + row["rejected"] + row["failed"] == row["arrived"]
    kept = dict(table.select("source", "attainment").rows())
    assert kept["host memory"] >= kept["multicast"] > kept["remote store"]
