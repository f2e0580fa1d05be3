"""Seconds, block counts and the fit, against the notes on λScale §2.4 and §3."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.paths import facts_folder
from workbench.transfer.model import (
    Hockney,
    LogGP,
    fit_hockney,
    leave_one_out,
    multicast_s,
    optimal_blocks,
    run_times,
)
from workbench.transfer.policy import SCHEDULES, flow_form, make_schedule, steps

BYTES = {"7B": 13_476_831_232, "13B": 26_031_728_640}
FITTED = Hockney(alpha_s=6.28e-3, bytes_per_s=42.0e9)


def test_the_elbow_of_13b_on_eight_nodes():
    found = [multicast_s("binomial_pipeline", 8, m, BYTES["13B"], FITTED) for m in (1, 2, 4, 8, 16, 32, 64, 128)]
    assert [round(seconds, 2) for seconds in found] == [1.88, 1.26, 0.97, 0.84, 0.81, 0.87, 1.05, 1.45]


@pytest.mark.parametrize(("model", "nodes", "best"), [("13B", 8, 14.0), ("7B", 8, 10), ("13B", 12, 17)])
def test_best_number_of_blocks(model, nodes, best):
    found = optimal_blocks("binomial_pipeline", nodes, BYTES[model], FITTED)
    assert found.real == pytest.approx(best, abs=0.5)
    assert abs(found.integer - found.real) <= 1


@given(
    st.sampled_from(sorted(set(SCHEDULES) - {"sharded"})),
    st.integers(5, 40),
    st.floats(1e-6, 1e-1),
    st.floats(1e6, 1e11),
)
def test_the_integer_optimum_beats_its_neighbours_and_respects_the_bound(name, nodes, alpha_s, total_bytes):
    cost = Hockney(alpha_s=alpha_s, bytes_per_s=12.5e9)
    best = optimal_blocks(name, nodes, total_bytes, cost)

    def seconds(blocks):
        return steps(name, nodes, blocks) * cost.travel_s(total_bytes / blocks)

    assert best.seconds == pytest.approx(seconds(best.integer), rel=1e-12)
    for blocks in {max(1, best.integer - 1), best.integer + 1, 2 * best.integer}:
        if blocks <= 65_535:
            assert best.seconds <= seconds(blocks) * (1 + 1e-12)
    assert best.bound_s <= best.seconds * (1 + 1e-12)


def test_without_overhead_more_blocks_are_always_better():
    best = optimal_blocks("chain", 8, 1e9, Hockney(bytes_per_s=1e9), limit=500)
    assert math.isinf(best.real)
    assert best.integer == 500
    assert optimal_blocks("sequential", 8, 1e9, Hockney(bytes_per_s=1e9)).integer == 1


def test_a_ring_in_slices_takes_one_message_time_for_any_number_of_nodes():
    cost = Hockney(bytes_per_s=49e9)
    found = [multicast_s("ring_broadcast", n, 1, BYTES["13B"], cost, slices=50_000) for n in (2, 4, 12)]
    assert found == pytest.approx([BYTES["13B"] / 49e9] * 3, rel=1e-3)


@pytest.mark.parametrize("nodes", range(2, 17))
def test_hockney_seconds_are_the_dataflow_of_the_schedule(nodes):
    """Of every schedule, as its transfers run when nobody waits for a common step."""
    for name in SCHEDULES:
        options = {"k_way": {"sources": 1}, "multi_chain": {"chains": 1}, "sharded": {"lanes": 1}}.get(name, {})
        if nodes % 2 == 0 and nodes > 2:
            options = {}
        for blocks in (2, 4, 6):
            schedule = make_schedule(name, nodes, blocks, **options)
            times = run_times(schedule, FITTED.travel_s(6e6 / schedule.blocks))
            found = multicast_s(name, nodes, blocks, 6e6, FITTED, **options)
            assert found == pytest.approx(times.complete_s.max(), rel=1e-12), (name, blocks)
            per_block, fixed = flow_form(name, nodes, **options)
            assert per_block * schedule.blocks + fixed == run_times(schedule, 1.0).complete_s.max(), (name, blocks)


def test_three_nodes_of_faasnets_tree_are_a_chain():
    """0 sends to 1 and 1 to 2: m + 1 messages, as many blocks as a chain of three, and the same best number of them."""
    for blocks in (1, 2, 7, 16):
        expected = multicast_s("chain", 3, blocks, 1e9, FITTED)
        assert multicast_s("faasnet_tree", 3, blocks, 1e9, FITTED) == pytest.approx(expected, rel=1e-12)
    best = optimal_blocks("faasnet_tree", 3, 100, Hockney(alpha_s=1.0, bytes_per_s=1.0))
    assert (best.real, best.integer, best.seconds, best.bound_s) == (10.0, 10, 121.0, 121.0)
    assert (steps("faasnet_tree", 3, 16), steps("faasnet_tree", 4, 16)) == (32, 32)  # in lock step the idle turn stays
    every = [min((blocks + 1) * FITTED.travel_s(1e9 / blocks) for blocks in range(1, 400))]
    assert optimal_blocks("faasnet_tree", 3, 1e9, FITTED).seconds == pytest.approx(every[0], rel=1e-12)


@given(st.integers(2, 20), st.integers(1, 20), st.floats(1e3, 1e8))
def test_chain_under_loggp(nodes, blocks, total_bytes):
    """(n-1) hops of one message, then the stream's gaps: the next block overlaps with latency and overhead."""
    cost = LogGP(latency_s=2e-6, overhead_s=1e-6, gap_s=1.5e-6, per_byte_s=8e-11)
    size = total_bytes / blocks
    expected = (nodes - 1) * cost.travel_s(size) + (blocks - 1) * cost.busy_s(size)
    assert multicast_s("chain", nodes, blocks, total_bytes, cost) == pytest.approx(expected, rel=1e-9)


def test_loggp_without_overlap_is_hockney():
    same = LogGP(latency_s=0.0, overhead_s=0.0, gap_s=0.0, per_byte_s=1e-9)
    for name in ("chain", "binomial_pipeline", "faasnet_tree"):
        hockney = multicast_s(name, 8, 4, 4e6, Hockney(bytes_per_s=1e9))
        assert multicast_s(name, 8, 4, 4e6, same) == pytest.approx(hockney, rel=1e-5)


def recorded(system):
    """Rows (model, nodes, seconds) of the committed records; 7B and 13B on 4 and 8 nodes."""
    table = pl.read_csv(facts_folder() / "published" / "lambdascale_recorded.csv")
    assert set(table["kind"]) == {"recorded in the artifact"}
    rows = []
    for model in BYTES:
        for nodes in (4, 8):
            series, x = f"recorded time, {system}, {model}", str(nodes)
            (seconds,) = table.filter((pl.col("series") == series) & (pl.col("x") == x))["value"]
            rows.append((model, nodes, seconds))
    return rows


def test_the_records_are_those_of_the_notes():
    assert [seconds for *_, seconds in recorded("FaaScale")] == [0.45, 0.4715, 0.7748, 0.80]
    assert [seconds for *_, seconds in recorded("FaaSNet")] == [0.68, 0.7620, 1.3348, 1.4622]
    assert [seconds for *_, seconds in recorded("NCCL")] == [0.9286, 0.8268, 0.9706, 1.2227]


def columns(system, name):
    rows = recorded(system)
    messages = [steps(name, nodes, 16) for _, nodes, _ in rows]
    return messages, [BYTES[model] / 16 for model, *_ in rows], [seconds for *_, seconds in rows]


def test_predicted_ratio_of_faasnet_to_the_pipeline():
    """notes on λScale §6, equal bandwidth and no overhead."""
    ratios = [steps("faasnet_tree", n, 16) / steps("binomial_pipeline", n, 16) for n in (4, 8, 12)]
    assert [round(ratio, 2) for ratio in ratios] == [1.88, 1.89, 1.79]


def test_fit_to_the_recorded_times():
    fitted = fit_hockney(*columns("FaaScale", "binomial_pipeline"))
    assert fitted.bytes_per_s == pytest.approx(42.0e9, rel=0.005)
    assert fitted.alpha_s == pytest.approx(6.28e-3, rel=0.005)
    assert fit_hockney(*columns("FaaSNet", "faasnet_tree")).bytes_per_s == pytest.approx(38e9, rel=0.02)


def test_each_recorded_time_is_predicted_by_the_others_within_five_per_cent():
    messages, sizes, seconds = columns("FaaScale", "binomial_pipeline")
    assert leave_one_out(messages, sizes, seconds).tolist() == pytest.approx(seconds, rel=0.05)


@given(st.floats(0, 1e-2), st.floats(1e8, 1e12), st.lists(st.integers(1, 50), min_size=3, max_size=8, unique=True))
def test_a_fit_recovers_what_made_the_times(alpha_s, bytes_per_s, messages):
    sizes = np.linspace(1e6, 1e9, len(messages))
    seconds = [count * (alpha_s + size / bytes_per_s) for count, size in zip(messages, sizes, strict=True)]
    fitted = fit_hockney(messages, sizes, seconds)
    assert fitted.bytes_per_s == pytest.approx(bytes_per_s, rel=1e-5)
    assert fitted.alpha_s == pytest.approx(alpha_s, rel=1e-4, abs=1e-9 + 1e-5 * sizes[-1] / bytes_per_s)


def test_a_relative_fit_listens_to_small_messages():
    """True for sizes below 1 MB and 10 % slow above: only the relative fit finds the overhead."""
    sizes = np.array([1e3, 1e4, 1e5, 1e6, 1e9])
    seconds = 1e-5 + sizes / 1e10 * np.array([1, 1, 1, 1, 1.1])
    ones = np.ones(5)
    relative = fit_hockney(ones, sizes, seconds, relative=True)
    absolute = fit_hockney(ones, sizes, seconds)
    assert relative.alpha_s == pytest.approx(1e-5, rel=0.05)
    assert absolute.bytes_per_s == pytest.approx(1e10 / 1.1, rel=1e-3)
    with pytest.raises(InputError, match="not above 0"):
        fit_hockney([1, 1], [1, 2], [0.0, 1.0], relative=True)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (([1, 1], [1e6, 1e6], [0.1, 0.2]), "do not tell overhead from bandwidth"),
        (([1, 1], [1e6], [0.1, 0.2]), "three columns of equal length"),
        (([1, 1], [1e6, 2e6], [0.1, float("nan")]), "finite"),
        (([1, 1, 1], [1e6, 2e6, 3e6], [0.3, 0.2, 0.1]), "do not grow"),
    ],
)
def test_measurements_that_cannot_be_fitted(columns, problem):
    with pytest.raises(InputError, match=problem):
        fit_hockney(*columns)


def test_a_negative_overhead_is_fitted_as_none():
    fitted = fit_hockney([1, 1], [1e6, 2e6], [0.9e-3, 2.1e-3])
    assert fitted.alpha_s == 0.0
    assert fitted.bytes_per_s == pytest.approx(5e12 / (0.9e-3 * 1e6 + 2.1e-3 * 2e6))


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_costs_refuse_impossible_bandwidths(bad):
    with pytest.raises(InputError, match="bytes_per_s"):
        Hockney(bytes_per_s=bad)
