"""Windows are ranked as the notes on data found them, and as brute force does."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import UserError
from workbench.workloads import cut, trace, windows


@pytest.mark.parametrize(
    ("name", "length_s", "start_s", "requests"),
    [
        ("azure-conv-2023", 300, 1644, 2380),
        ("azure-conv-2023", 480, 1587, 3653),
        ("azure-code-2023", 300, 846, 1379),
        ("azure-code-2023", 480, 1337, 2003),
    ],
)
def test_busiest_windows_of_azure_2023(name, length_s, start_s, requests, trace_folder):
    """Notes on data, section 2."""
    given_trace = trace(name)
    best = windows(given_trace, length_s).row(0, named=True)
    assert (best["start_s"], best["requests"]) == (start_s, requests)
    assert len(cut(given_trace, best["start_s"], best["end_s"])) == requests


TIMES = st.lists(st.floats(0, 40), min_size=3, max_size=60).map(sorted)


@given(TIMES, st.integers(2, 9))
@settings(deadline=None)
def test_as_by_brute_force(times, length):
    times = [entry - times[0] for entry in times]
    if times[-1] < length - 1:
        return
    given_trace = trace(pl.DataFrame({"t": times, "prompt": range(1, len(times) + 1), "output": [1] * len(times)}))
    counts = np.bincount(np.array(times).astype(int), minlength=int(times[-1]) + 1)
    every = [counts[start : start + length] for start in range(counts.size - length + 1)]
    best = windows(given_trace, length, by="busiest", top=1).row(0, named=True)
    assert best["requests"] == max(part.sum() for part in every)
    burst = windows(given_trace, length, by="burstiest", top=1).row(0, named=True)
    dispersion = [part.var(ddof=1) / part.mean() for part in every if part.any()]
    assert burst["idc"] == pytest.approx(max(dispersion))
    part = every[int(burst["start_s"])]
    assert burst["peak_over_mean"] == pytest.approx(part.max() / part.mean())
    assert burst["cv"] == pytest.approx(part.std(ddof=1) / part.mean())


def test_listed_windows_do_not_overlap():
    table = windows(trace("azure-conv-2023-like"), 300, top=8)
    starts = np.sort(table["start_s"].to_numpy())
    assert np.all(np.diff(starts) >= 300)
    assert table["requests"].is_sorted(descending=True)


def test_the_representative_window_looks_like_the_trace():
    given_trace = trace("azure-conv-2023-like", seed=4)
    row = windows(given_trace, 600, by="representative", top=1).row(0, named=True)
    whole = given_trace.statistics
    assert row["rate_per_s"] == pytest.approx(whole.arrivals.rate_per_s, rel=0.1)
    assert row["prompt_tokens_mean"] == pytest.approx(whole.prompt.mean, rel=0.1)
    assert row["distance"] < windows(given_trace, 600, top=1)["distance"][0]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"length_s": 1}, "'length_s': is 1; give a whole number of seconds"),
        ({"length_s": 2.5}, "'length_s': is 2.5; give a whole number of seconds"),
        ({"length_s": 99_999}, "no window of 99999 s fits"),
        ({"length_s": 10, "by": "best"}, "not by 'best'"),
    ],
)
def test_windows_that_cannot_be(options, part):
    with pytest.raises(UserError, match=part):
        windows(trace("mooncake-synthetic-like"), **options)
