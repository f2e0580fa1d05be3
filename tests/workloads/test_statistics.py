"""Statistics against values worked out by hand or by another library."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from workbench.workloads import trace
from workbench.workloads.statistics.arrivals import arrival_statistics, autocorrelation, window_counts
from workbench.workloads.statistics.lengths import length_statistics, rank_correlation
from workbench.workloads.statistics.likeness import arrival_measures, deviations, distance
from workbench.workloads.statistics.prefixes import prefix_statistics


def test_lengths_by_hand():
    found = length_statistics(np.array([1, 2, 3, 4, 0]))
    assert (found.n, found.zeros, found.mean, found.min, found.max) == (5, 1, 2.0, 0, 4)
    assert found.std == pytest.approx(np.sqrt(2.5))
    assert found.p25 == 1.0
    assert found.p10 == pytest.approx(0.4)
    assert found.ln_mean == pytest.approx(np.log(24) / 4)


def test_arrivals_by_hand():
    found = arrival_statistics(np.array([0.0, 0.5, 0.6, 2.2, 3.1]))
    assert found.rate_per_s == pytest.approx(4 / 3.1)
    assert found.gap_cv == pytest.approx(np.std([0.5, 0.1, 1.6, 0.9], ddof=1) / 0.775)
    one_second = found.at(1.0)
    assert (one_second.windows, one_second.max_per_s, one_second.empty_share) == (3, 3.0, pytest.approx(1 / 3))
    assert one_second.idc == pytest.approx(np.var([3, 0, 1], ddof=1) / (4 / 3))


def test_autocorrelation_by_its_definition():
    series = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    centred = series - 4.0
    assert autocorrelation(series, 2) == pytest.approx(sum(centred[:3] * centred[2:]) / sum(centred**2))
    assert np.isnan(autocorrelation(series, 5))
    assert np.isnan(autocorrelation(np.ones(9), 1))


def test_too_few_arrivals_have_no_statistics():
    assert arrival_statistics(np.array([0.0, 1.0])) is None
    assert arrival_statistics(np.zeros(5)) is None
    assert arrival_measures(np.zeros(5)) == {}


@given(st.lists(st.integers(0, 4), min_size=3, max_size=40), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_rank_correlation_as_in_scipy(values, seed):
    other = np.random.default_rng(seed).integers(0, 5, len(values))
    if len(set(values)) > 1 and len(set(other)) > 1:
        assert rank_correlation(np.array(values), other) == pytest.approx(spearmanr(values, other).statistic)


@given(st.lists(st.floats(0, 500), min_size=3, max_size=60), st.sampled_from([1.0, 10.0]))
@settings(deadline=None)
def test_windows_as_in_numpy(times, width):
    """The same bins as numpy.histogram with whole edges, the last closed."""
    times = np.sort(np.round(times, 3)) - min(np.round(times, 3))
    counts = window_counts(times, width)
    if counts.size:
        edges = np.arange(counts.size + 1) * width
        assert counts.tolist() == np.histogram(times, edges)[0].tolist()
        assert edges[-1] < times[-1] <= edges[-1] + width


def test_prefixes_by_hand():
    found = prefix_statistics(pl.Series([[1, 2, 3], [1, 2, 4], [], [9]], dtype=pl.List(pl.Int64)))
    assert (found.blocks, found.unique_blocks, found.ideal_hit_share) == (7, 5, pytest.approx(2 / 7))


def test_distance_to_targets():
    targets = {"gap_cv": 2.0, "acf1_1s": 0.5}
    assert deviations({"gap_cv": 2.2, "acf1_1s": 0.4}, targets) == pytest.approx({"gap_cv": 0.1, "acf1_1s": -0.1})
    assert distance({"gap_cv": 2.2, "acf1_1s": 0.4}, targets) == pytest.approx(0.1)
    assert distance({"gap_cv": 2.2}, targets) == float("inf")


def test_the_table_holds_every_number():
    made = trace("mooncake-synthetic-like")
    table = made.statistics.table()
    row = table.filter((pl.col("group") == "arrivals in 10 s") & (pl.col("quantity") == "idc"))
    assert row["value"].item() == made.statistics.arrivals.at(10.0).idc
    assert {"trace", "prompt_tokens", "output_tokens", "lengths", "arrivals", "prefixes"} <= set(table["group"])
