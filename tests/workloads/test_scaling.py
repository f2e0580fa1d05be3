"""Three ways to scale load, cutting and merging: what they keep and what they change."""

import itertools

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InputError, UserError
from workbench.workloads import compress, cut, merge, repeat, superpose, trace
from workbench.workloads.scaling.joining import hashes_apart


@st.composite
def made(draw, least=2):
    count = draw(st.integers(least, 25))
    times = sorted(draw(st.lists(st.integers(0, 500), min_size=count, max_size=count)))
    if times[0] == times[-1]:
        times[-1] += 1
    return trace(
        pl.DataFrame(
            {"t": [entry / 4 for entry in times], "prompt": range(1, count + 1), "output": range(101, count + 101)}
        )
    )


@given(made(), st.floats(0.01, 100))
@settings(deadline=None)
def test_compress_divides_times_and_nothing_else(given_trace, factor):
    scaled = compress(given_trace, factor)
    assert scaled.requests["arrival_s"].to_list() == [t / factor for t in given_trace.requests["arrival_s"]]
    assert scaled.requests.drop("arrival_s").equals(given_trace.requests.drop("arrival_s"))


def test_compress_refuses_a_factor_so_small_that_times_overflow():
    requests = pl.DataFrame({"arrival_s": [0.0, 1.0], "prompt_tokens": [1, 1], "output_tokens": [1, 1]})
    with pytest.raises(InputError, match="so small that times overflow; raise it"):
        compress(trace(requests), 1e-310)


def by_the_artifacts_rule(stamps, lengths, first, times):
    """Repeat each stamp; lengths one after the other from the window's first on, round and round."""
    return [
        (stamp, lengths[(first + k) % len(lengths)]) for k, stamp in enumerate(s for s in stamps for _ in range(times))
    ]


@given(made(), st.integers(1, 4), st.data())
@settings(deadline=None)
def test_repeat_follows_the_artifacts_rule(given_trace, times, data):
    stamps = given_trace.requests["arrival_s"].to_numpy()
    start = data.draw(st.integers(0, stamps.size - 1))
    window = (float(stamps[start]), float(stamps[-1]) + 1)
    first = int(np.searchsorted(stamps, window[0]))
    scaled = repeat(given_trace, times, window=window)
    lengths = given_trace.requests.select("prompt_tokens", "output_tokens").rows()
    expected = by_the_artifacts_rule((stamps[first:] - stamps[first]).tolist(), lengths, first, times)
    ours = scaled.requests.select("arrival_s", "prompt_tokens", "output_tokens").rows()
    assert [(t, (p, o)) for t, p, o in ours] == expected
    assert scaled.origin.start_s == given_trace.origin.start_s + stamps[first]


def test_repeat_takes_lengths_beyond_the_window():
    """The lengths of a repeated window run on into what follows it."""
    given_trace = trace(pl.DataFrame({"t": [0, 1, 2, 3], "prompt": [1, 2, 3, 4], "output": [1, 1, 1, 1]}))
    scaled = repeat(given_trace, 2, window=(1, 3))
    assert scaled.requests["arrival_s"].to_list() == [0, 0, 1, 1]
    assert scaled.requests["prompt_tokens"].to_list() == [2, 3, 4, 1]


@given(made(), st.integers(1, 5), st.one_of(st.none(), st.integers(0, 99)))
@settings(deadline=None)
def test_superposed_copies_keep_their_requests(given_trace, copies, seed):
    scaled = superpose(given_trace, copies, seed)
    assert len(scaled) == copies * len(given_trace)
    assert scaled.requests["arrival_s"].is_sorted()
    assert scaled.requests["arrival_s"][0] == 0
    counts = scaled.requests["prompt_tokens"].value_counts()["count"].unique().to_list()
    assert counts == [copies]
    assert scaled == superpose(given_trace, copies, seed)


def test_one_copy_is_the_trace_itself():
    given_trace = trace("mooncake-synthetic-like")
    assert superpose(given_trace, 1).requests.equals(given_trace.requests)
    assert repeat(given_trace, 1).requests.equals(given_trace.requests)
    assert compress(given_trace, 1).requests.equals(given_trace.requests)


@given(made(), st.floats(0, 60), st.floats(1, 100))
@settings(deadline=None)
def test_cutting_into_parts_loses_nothing(given_trace, start_s, length_s):
    bounds = [0.0, start_s, start_s + length_s, 1e9]
    parts = 0
    for low, high in itertools.pairwise(bounds):
        inside = given_trace.requests.filter((pl.col("arrival_s") >= low) & (pl.col("arrival_s") < high))
        parts += inside.height
        if not inside.height:
            with pytest.raises(UserError, match="No request"):
                cut(given_trace, low, high)
            continue
        part = cut(given_trace, low, high)
        assert part.requests["request_id"].equals(inside["request_id"])
        assert part.requests["arrival_s"][0] == 0
        assert part.origin.start_s - given_trace.origin.start_s == inside["arrival_s"][0]
    assert parts == len(given_trace)


def test_what_each_way_does_to_the_peaks():
    """Repeating keeps peak over mean at every width; copies of independent users flatten it."""
    given_trace = trace("azure-code-2023-like", seed=2)
    repeated, superposed, faster = repeat(given_trace, 4), superpose(given_trace, 4), compress(given_trace, 4)
    for scaled, name in ((repeated, "repeat"), (superposed, "superpose"), (faster, "compress")):
        step = scaled.origin.transformations[-1]
        assert step.name == name
        assert step.rate_after_per_s == pytest.approx(4 * step.rate_before_per_s, rel=0.02)
        assert scaled.changes["window_s"].to_list() == [1.0, 10.0, 60.0]
    for old, new in zip(
        *(getattr(repeated.origin.transformations[-1], part) for part in ("before", "after")), strict=True
    ):
        assert new.peak_over_mean == pytest.approx(old.peak_over_mean, rel=1e-9)
        assert new.cv == pytest.approx(old.cv, rel=1e-3)
    flattened = superposed.changes
    assert (flattened["peak_over_mean_after"] < flattened["peak_over_mean_before"]).all()
    assert (flattened["cv_after"] < 0.75 * flattened["cv_before"]).all()


def test_changes_are_listed_in_order():
    scaled = compress(cut(trace("mooncake-synthetic-like"), 100, 400), 2)
    assert scaled.changes["transformation"].unique(maintain_order=True).to_list() == [
        "cut(start_s=100, end_s=400)",
        "compress(factor=2)",
    ]
    assert scaled.origin.title == "mooncake-synthetic-like, cut(start_s=100, end_s=400), compress(factor=2)"


def test_copies_share_no_prefix():
    given_trace = trace("mooncake-synthetic-like")
    before, after = given_trace.statistics.prefixes, superpose(given_trace, 3).statistics.prefixes
    assert after.unique_blocks == 3 * before.unique_blocks
    assert after.ideal_hit_share == pytest.approx(before.ideal_hit_share)


@given(
    st.lists(st.lists(st.lists(st.integers(0, 1 << 63), max_size=4), min_size=1, max_size=5), min_size=1, max_size=4)
)
@settings(deadline=None)
def test_hashes_are_kept_apart(tables):
    given_tables = [pl.DataFrame({"prefix_hashes": pl.Series(entry, dtype=pl.List(pl.UInt64))}) for entry in tables]
    apart = [table["prefix_hashes"].to_list() for table in hashes_apart(given_tables)]
    used = [{entry for ids in table for entry in ids} for table in apart]
    assert sum(map(len, used)) == len(set().union(*used))
    for old, new in zip(tables, apart, strict=True):
        assert list(map(len, old)) == list(map(len, new))
        pairs = {(a, b) for ids, other in zip(old, new, strict=True) for a, b in zip(ids, other, strict=True)}
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@given(made(), made())
@settings(deadline=None)
def test_merging_keeps_all_requests(first, second):
    merged = merge({"a": first, "b": second})
    assert len(merged) == len(first) + len(second)
    assert merged.requests.columns == first.requests.columns
    ranked = [one.model_copy(update={"requests": one.requests.with_columns(priority=7)}) for one in (first, second)]
    assert "priority" not in merge({"a": ranked[0], "b": second}).requests.columns
    assert set(merge({"a": ranked[0], "b": ranked[1]}).requests["priority"]) == {7}
    assert merged.requests.filter(pl.col("model") == "b")["prompt_tokens"].equals(second.requests["prompt_tokens"])
    assert merged.requests["arrival_s"].is_sorted()


def stamps(*cells: str):
    return trace(pl.DataFrame({"time": cells, "prompt": [1] * len(cells), "output": [1] * len(cells)}))


def test_weeks_recorded_apart_fall_on_each_other():
    """Azure 2024 code and conversation cover different weeks: their union has a fake weekend (notes, defect 15)."""
    friday, next_friday = stamps("2024-05-10 09:00:00", "2024-05-10 10:00:00"), stamps("2024-05-17 09:30:00")
    merged = merge({"code": friday, "conv": next_friday}, align="hour-of-week")
    assert merged.requests.select("model", "arrival_s").rows() == [("code", 0.0), ("conv", 1800.0), ("code", 3600.0)]


def test_merging_that_makes_no_sense(trace_folder):
    given_trace = trace("mooncake-synthetic-like")
    with pytest.raises(UserError, match="at least two"):
        merge({"a": given_trace})
    with pytest.raises(UserError, match="no absolute times"):
        merge({"a": given_trace, "b": given_trace}, align="hour-of-week")
    with pytest.raises(UserError, match="aligned by"):
        merge({"a": given_trace, "b": given_trace}, align="end")
    azure = trace("azure-code-2023")
    renamed = azure.model_copy(update={"origin": azure.origin.model_copy(update={"name": "vidur-splitwise-code"})})
    with pytest.raises(UserError, match="count each twice"):
        merge({"a": azure, "b": renamed})


def test_a_stand_in_in_a_mix_marks_the_mix():
    mixed = merge({"a": trace("mooncake-synthetic-like"), "b": stamps("2024-05-10 09:00:00")})
    assert mixed.origin.stand_in
    assert "prefix_hashes" not in mixed.requests.columns


def test_prefixes_of_other_block_sizes_do_not_mix():
    small, large = trace("qwen-thinking-like", rows=50), trace("mooncake-synthetic-like", rows=50)
    assert "prefix_hashes" not in merge({"a": small, "b": large}).requests.columns
    alike = merge({"a": large, "b": trace("mooncake-conversation-like", rows=50)})
    assert alike.origin.block_tokens == 512
    reuse = [
        trace(name, rows=50).statistics.prefixes.unique_blocks
        for name in ("mooncake-synthetic-like", "mooncake-conversation-like")
    ]
    assert alike.statistics.prefixes.unique_blocks == sum(reuse)


@pytest.mark.parametrize(
    ("build", "part"),
    [
        (lambda entry: compress(entry, 0), "'factor': is 0; give a finite"),
        (lambda entry: compress(entry, float("nan")), "'factor': is nan; give a finite"),
        (lambda entry: repeat(entry, 0), "'times': is 0; give a whole number from 1 to"),
        (lambda entry: repeat(entry, 1.5), "'times': is 1.5; give a whole number from 1 to"),
        (lambda entry: superpose(entry, 0), "'copies': is 0; give a whole number from 1 to"),
        (lambda entry: cut(entry, 5, 5), "No request"),
        (lambda entry: cut(entry, 1e9, 2e9), "choose another window"),
    ],
)
def test_parameters_that_cannot_be(build, part):
    with pytest.raises(UserError, match=part):
        build(trace("mooncake-synthetic-like", rows=50))


def test_requests_without_times_cannot_be_superposed():
    with pytest.raises(UserError, match="no span"):
        superpose(trace(pl.DataFrame({"num_prefill_tokens": [1, 2], "num_decode_tokens": [1, 2]})), 2)
