"""The real traces load, with the row counts and statistics that were computed elsewhere."""

import csv
import math

import polars as pl
import pytest

from workbench.workloads import lengths_of, trace
from workbench.workloads.facts import all_facts

FILES = {
    "azure-code-2023": "AzureLLMInferenceTrace_code.csv",
    "azure-conv-2023": "AzureLLMInferenceTrace_conv.csv",
    "azure-code-2024-window": "azure2024_code_window_1024.csv",
    "mooncake-conversation": "mooncake_conversation_trace.jsonl",
    "mooncake-synthetic": "mooncake_synthetic_trace.jsonl",
    "vidur-arxiv-lengths": "vidur_arxiv_summarization_lengths.csv",
}
SIDES = {"inp": "prompt", "out": "output"}
LENGTHS = {"p99.9": "p99_9", "ln_mu": "ln_mean", "ln_sigma": "ln_std"}
ARRIVALS = {"rate": "rate_per_s", "ia_mean": "gap_mean_s", "ia_cv": "gap_cv", "ia_zero": "zero_gaps"}
WINDOWS = {
    "nb": "windows",
    "mean": "mean_per_s",
    "max": "max_per_s",
    "peak_mean": "peak_over_mean",
    "p99_mean": "p99_over_mean",
    "zero_frac": "empty_share",
}
FITS = ("name", "note", "gamma_mom_shape", "gamma_mle_shape", "gamma_mle_scale", "weibull_shape", "weibull_scale")
"""Entries of the file that are no statistics of ours."""


def close(ours: float, theirs: float | None) -> bool:
    return math.isnan(ours) if theirs is None else ours == pytest.approx(theirs, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("name", FILES)
def test_rows_lengths_and_arrivals(name, published):
    facts, found = published[FILES[name]], trace(name, spread=False)
    statistics = found.statistics
    assert len(found) == facts["rows"]
    assert found.origin.verified == "sha256"
    for theirs, ours in SIDES.items():
        for key, value in facts[theirs].items():
            assert close(getattr(getattr(statistics, ours), LENGTHS.get(key, key)), value), (ours, key)
    if "arr" not in facts:
        assert statistics.arrivals is None
        return
    arrivals = facts["arr"]
    for key in arrivals.keys() - {"w1", "w10", "w60", *FITS}:
        assert close(getattr(statistics.arrivals, ARRIVALS.get(key, key)), arrivals[key]), key
    for window in statistics.arrivals.windows:
        for key, value in arrivals[f"w{window.window_s:g}"].items():
            assert close(getattr(window, WINDOWS.get(key, key)), value), (window.window_s, key)


@pytest.mark.parametrize("name", ["azure-code-2023", "azure-conv-2023", "mooncake-conversation", "mooncake-synthetic"])
def test_rank_correlation(name, published):
    assert close(trace(name).statistics.length_rank_correlation, published[FILES[name]]["spearman"])


@pytest.mark.parametrize("name", ["mooncake-conversation", "mooncake-synthetic"])
def test_prefix_reuse(name, published):
    facts, found = published[FILES[name]], trace(name).statistics.prefixes
    assert (found.blocks, found.unique_blocks) == (facts["blocks"], facts["unique_blocks"])
    assert close(found.ideal_hit_share, facts["ideal_block_hit"])


@pytest.mark.parametrize("name", FILES)
def test_facts_agree_with_the_files(name, published):
    """What `data/traces` says was published is what the statistics file says."""
    facts, theirs = all_facts()[name], published[FILES[name]]
    assert facts.rows == theirs["rows"]
    assert facts.value("prompt_tokens mean") == theirs["inp"]["mean"]
    if "arr" in theirs:
        assert facts.value("arrivals gap_cv") == theirs["arr"]["ia_cv"]
        assert facts.value("arrivals in 10 s idc") == theirs["arr"]["w10"]["idc"]


def test_absolute_start_is_what_the_stamps_say(published):
    """Not the 11 November of the publisher's description (notes on data, defect 1)."""
    assert trace("azure-code-2023").origin.start == "2023-11-16 18:17:03.979960 UTC"
    assert trace("azure-code-2024-window").origin.start == "2024-05-12 08:47:44.022580 UTC"


def test_defects_of_azure_2023_are_counted(trace_folder):
    defects = dict(trace("azure-code-2023").defects.select("defect", "rows").rows())
    assert defects["CRLF line end"] == 8819
    assert defects["no newline at the end"] == 1
    assert defects["prompt_tokens cut off at 7,435 to 7,437"] == 322
    assert defects["stamp without an offset"] == 8819
    with (trace_folder / FILES["azure-code-2023"]).open() as file:
        outputs = [int(row["GeneratedTokens"]) for row in csv.DictReader(file)]
    assert min(outputs) == 6
    assert defects["output_tokens at the floor of 6"] == outputs.count(6)
    assert "stamp without a fraction" not in defects


def test_mooncake_grid_is_spread(trace_folder):
    """1,180 stamps for 12,031 requests: spread inside their 3 s cells, in file order, by seed."""
    grid, spread = trace("mooncake-conversation", spread=False), trace("mooncake-conversation")
    assert grid.requests["arrival_s"].n_unique() == 1180
    assert grid.defects["rows"].to_list() == [10851]
    assert spread.requests["arrival_s"].n_unique() == 12031
    assert spread.requests["request_id"].equals(grid.requests["request_id"])
    moved = spread.requests["arrival_s"] + spread.origin.start_s - grid.requests["arrival_s"]
    assert 0 <= moved.min() <= moved.max() < 3.0 + 1e-9
    assert spread == trace("mooncake-conversation", seed=0) != trace("mooncake-conversation", seed=1)


def test_the_window_file_repeats_its_stamps(trace_folder):
    """`arrival_ms`, which is not read, says the same as the stamps that are."""
    milliseconds = pl.read_csv(trace_folder / FILES["azure-code-2024-window"])["arrival_ms"]
    ours = trace("azure-code-2024-window").requests["arrival_s"]
    assert (ours - milliseconds / 1000).abs().max() < 1e-6


def test_lengths_without_times_get_arrivals(trace_folder):
    found = trace("vidur-arxiv-lengths", rows=1000)
    assert found.origin.clock == "none"
    drawn = lengths_of(found)
    assert len(drawn.prompt_tokens) == 1000


def test_a_real_vllm_run_has_two_clocks(trace_folder):
    """Arrivals are Unix time; 300 requests arrive within 29.1 s (notes on peers, section 3)."""
    path = trace_folder.parent / "measured" / "llmservingsim" / "rtx4090_llama3.1-8b_vllm_requests.jsonl"
    found = trace(path)
    assert (len(found), found.origin.format) == (300, "llmservingsim-run")
    assert found.requests["arrival_s"][-1] == pytest.approx(29.1, abs=0.05)
    assert found.requests["prompt_tokens"].mean() == pytest.approx(857, abs=1)
    assert found.requests["output_tokens"].mean() == pytest.approx(653, abs=1)
    assert "another clock" in found.defects["defect"][0]


def test_parts(trace_folder):
    whole = trace("azure-conv-2023")
    first = trace("azure-conv-2023", rows=1000)
    assert first.requests.equals(whole.requests[:1000])
    middle = trace("azure-conv-2023", rows=(500, 700))
    assert middle.requests["request_id"].to_list() == list(range(500, 700))
    window = trace("azure-conv-2023", window=(1644, 1944))
    assert len(window) == 2380
    assert window.origin.start_s == pytest.approx(whole.origin.start_s + 1644, abs=0.5)
