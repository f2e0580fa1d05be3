"""What the experiments of BlendServe have to show, beyond running: orderings, failures, sweeps."""

import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import polars as pl
import pytest

import workbench as wb
from workbench.catalogue import judging, running, spec
from workbench.catalogue.blendserve import four_sources
from workbench.catalogue.blendserve.heat import (
    UNLABELLED,
    grid_headline,
    row_series,
    rows_headline,
    sampled,
    with_series,
)
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_BALANCE,
    NF_DFS,
    OPTIMAL,
    TRACES,
    VLLM,
    Setup,
    costs_for,
    served,
)
from workbench.catalogue.blendserve.parameters import BIASED, FEEDBACK, PRINTED
from workbench.catalogue.blendserve.real_judging import judge
from workbench.catalogue.blendserve.retention import KEPT
from workbench.catalogue.context import Context
from workbench.catalogue.published import published
from workbench.errors import UserError
from workbench.figures import sketch
from workbench.paths import write_atomic

SMALL = "100,000"


def run(id, **given):
    return running.run(spec.find(id), given, backends="compiled")


def test_no_system_beats_the_optimum_and_blending_beats_all():
    table = run("blendserve/fig7", requests=SMALL).tables["throughput"].filter(pl.col("panel") == "a")
    for trace in TRACES:
        rate = dict(table.filter(pl.col("trace") == trace).select("system", "tokens_per_s").iter_rows())
        assert max(rate[VLLM], rate[NF_DFS], rate[NF_BALANCE]) < rate[BLEND] < rate[OPTIMAL]
        assert rate[VLLM] < rate[NF_DFS]


def test_the_printed_scanner_lets_in_too_much():
    """On average over the traces the printed mean swaps more and gains less; neither way reaches density feedback."""
    table = run("blendserve/scanners", requests="200,000").tables["scanners"]
    mean = {name: table.filter(pl.col("scan") == name).mean() for name in (PRINTED, BIASED, FEEDBACK)}
    assert mean[PRINTED]["swaps"][0] > mean[BIASED]["swaps"][0]
    assert mean[PRINTED]["share"][0] < mean[BIASED]["share"][0] < mean[FEEDBACK]["share"][0]


def test_idle_prefixes_are_what_a_random_order_lives_on():
    table = run("blendserve/retention", requests=SMALL, sharings=(0.05, 0.35)).tables["retention"]

    def value(system, sharing, column):
        return table.filter((pl.col("system") == system) & (pl.col("sharing") == sharing))[column][0]

    assert value(NF_BALANCE, 0.35, "kept") < 0.1 < 0.5 < value(KEPT, 0.35, "kept")
    assert (
        value(NF_BALANCE, 0.35, "tokens_per_s")
        < value(NF_DFS, 0.35, "tokens_per_s")
        < value(KEPT, 0.35, "tokens_per_s")
    )
    assert value(NF_DFS, 0.05, "tokens_per_s") < value(NF_BALANCE, 0.05, "tokens_per_s")


def test_a_mix_for_another_accelerator_keeps_the_counts():
    """The A100's jobs have another density on an H100; asked for that density the same requests come out."""
    table = run("blendserve/hardware", requests="40,000", accelerators=("a100-80gb-sxm", "h100-80gb-sxm")).tables[
        "hardware"
    ]
    first = table.filter((pl.col("accelerator") == "a100-80gb-sxm") & (pl.col("system") == OPTIMAL))
    other = table.filter((pl.col("accelerator") == "h100-80gb-sxm") & (pl.col("system") == OPTIMAL))
    densities = {jobs: other.filter(pl.col("jobs") == jobs)["density"][0] for jobs in other["jobs"]}
    balance = (989.5e12 / 312e12) / (3.35e12 / 2.039e12)
    assert densities["jobs of the same density"] == pytest.approx(first["density"][0], rel=0.01)
    assert densities["the A100's jobs"] == pytest.approx(first["density"][0] / balance, rel=0.02)


KILLED = """
import os, signal, sys
from concurrent.futures import ThreadPoolExecutor
import workbench as wb

def tell(done, read, total):
    if done == 2:
        os.kill(os.getpid(), signal.SIGKILL)

grid = {"densities": [(0.9,), (1.4,)], "sharings": [(0.05,), (0.35,)]}
wb.sweep("blendserve/fig11", grid=grid, requests="20,000", folder=sys.argv[1], executor=ThreadPoolExecutor(1),
         workers=1, progress=tell)
"""


def test_a_killed_map_goes_on_where_it_stopped(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False)
    assert killed.returncode == -signal.SIGKILL
    told = []
    grid = {"densities": [(0.9,), (1.4,)], "sharings": [(0.05,), (0.35,)]}
    with ThreadPoolExecutor(1) as executor:
        swept = wb.sweep(
            "blendserve/fig11", grid=grid, requests="20,000", folder=tmp_path, executor=executor, workers=1,
            progress=lambda *counts: told.append(counts),
        )  # fmt: skip
    assert told[0] == (2, 2, 4)
    assert told[-1] == (4, 2, 4)
    whole = run("blendserve/fig11", densities=(0.9, 1.4), sharings=(0.05, 0.35), requests="20,000")
    assert swept.tables["cells"]["gain"].to_list() == whole.tables["cells"]["gain"].to_list()


def test_a_quick_map_keeps_the_corners():
    assert sampled((1, 2, 3, 4, 5), 2) == (1, 5)
    assert sampled((1, 2, 3, 4, 5), 3) == (1, 3, 5)
    assert sampled((7,), 2) == (7,)


class TestRealOrders:
    @pytest.fixture
    def recorded(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        return running.run(spec.find("blendserve/real-orders"), {}, backends=("compiled", "torch"))

    def test_the_recorded_run_is_right_and_foretold(self, recorded):
        assert recorded.backends == ("compiled", "recorded")
        assert [verdict.verdict for verdict in recorded.verdicts] == ["reproduced"] * 4
        same, operations, parts, ranks = recorded.verdicts
        assert same.ours == "identical"
        assert max(operations.ours, parts.ours) <= 0.10
        assert re.match("([1-9]) of \\1 pairs; ", ranks.reason)
        checked = recorded.tables["identity"]
        assert checked.filter(arithmetic="invariant")["difference"].to_list() == [0.0] * 4
        assert checked["distinct"].min() >= 8
        assert all(agreement.agrees for agreement in recorded.agreement)

    def test_what_speaks_against_a_run_is_said(self, recorded):
        """One logit off, a fit that misses, and the slowest order measured as the fastest."""
        tables = dict(recorded.tables)
        tables["identity"] = tables["identity"].with_columns(fault=pl.lit("logits differ"))
        tables["slopes"] = tables["slopes"].with_columns(error=pl.lit(0.11))
        random = pl.col("order") == "at random"
        tables["orders"] = tables["orders"].with_columns(seconds=pl.when(random).then(0.1).otherwise(pl.col("seconds")))
        draft = judging.Draft(spec.find("blendserve/real-orders"), {}, tables, None, True, "", "full", (0,), "", None)
        same, operations, parts, ranks = judge(draft)
        assert [verdict.verdict for verdict in (same, operations, parts, ranks)] == ["differs"] * 4
        assert same.reason.startswith("logits differ. Assumed here: ")
        assert "not so: down the tree before at random, one after the other" in ranks.reason


def test_what_is_said_of_all_cells_needs_all_of_them():
    whole = pl.DataFrame(
        [{"density": density, "sharing": sharing, "gain": 1.0 + sharing} for density in (0.8, 1.4)
         for sharing in (0.05, 0.15, 0.25, 0.35, 0.45)]
    )  # fmt: skip
    series = {0.8: "upper", 1.4: "lower"}
    sharings = (0.05, 0.15, 0.25, 0.35, 0.45)
    whole = with_series(whole, series)
    said = rows_headline(whole, series, "Azure", sharings)["series"].to_list()
    assert [name for name in said if "cells" in name] == [
        "BlendServe over NanoFlow-DFS, Azure, mean of the printed cells",
        "BlendServe over NanoFlow-DFS, smallest of the cells",
        "BlendServe over NanoFlow-DFS, largest of the cells",
    ]
    part = rows_headline(whole[:-1], series, "Azure", sharings)
    assert part.height == 9
    assert set(part["series"]) == {"upper", "lower"}


@pytest.mark.parametrize(("figure", "cells"), [("fig11", 65), ("fig13", 45), ("fig14", 50), ("fig15", 45)])
def test_a_full_map_has_every_printed_cell(figure, cells):
    """The default densities and sharing ratios are those of the published table, row by row and column by column."""
    entry = spec.find(f"blendserve/{figure}")
    given = entry.bind({})
    grid = pl.DataFrame(list(product(given["densities"], given["sharings"])), ["density", "sharing"], orient="row")
    printed = published(entry.id).filter(pl.col("series").str.ends_with("x = sharing ratio"))
    asked = sys.modules[entry.function.__module__].SERIES
    found = grid_headline(with_series(grid, asked).with_columns(gain=1.0), ())
    assert printed.height == cells
    assert set(found.select("series", "x").rows()) == set(printed.select("series", "x").rows())


def test_a_row_without_a_label_lies_between_those_beside_it():
    rows = list(row_series("WildChat", (0.8, 1.0, 1.2, 1.4, 1.6), 9))
    assert rows == pytest.approx([0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6])
    names = list(row_series("ShareGPT", (0.8, 0.9), 4).items())
    assert [density for density, _ in names] == [0.8, 0.85, 0.9, 0.95]
    assert [UNLABELLED in name for _, name in names] == [False, True, False, True]


def test_lengths_of_a_real_trace_are_named(shared_data):
    found = run("blendserve/tab2", main="azure-code-2023", requests="20,000")
    assert {verdict.trace for verdict in found.verdicts} == {"azure-code-2023"}


@pytest.mark.parametrize("step", range(1, 6))
@pytest.mark.parametrize("given", [{"levels": 3, "members": 4, "outliers": 0.5, "threshold_tokens": 1000}, {}])
def test_every_request_is_drawn_once_and_hangs_below_a_node(step, given):
    """At the ends of the sliders too: requests and units together stand for all requests, edges meet drawn nodes."""
    outcome = running.run(spec.find("blendserve/tree-steps"), {"step": step, **given})
    nodes = outcome.tables["nodes"].filter(pl.col("step") == step)
    requests = 8 * 4 if given else 16
    assert nodes.filter(pl.col("kind") != "shared")["requests"].sum() == requests
    assert set(nodes["parent"]) - {-1} <= set(nodes["node"])
    edges = [one for one in sketch(outcome)["data"] if one["mode"] == "lines"]
    assert len(edges) == len(nodes) - 1
    places = sorted(nodes.filter(kind="request")["place"])
    assert len(places) == len(set(places))


def test_a_larger_threshold_buys_order_with_sharing():
    """Nothing may move at 0; where every prefix may be computed anew, all lengths known, densities fall."""
    table = run("blendserve/threshold", sampled=1.0, levels=2).tables["thresholds"].sort("threshold_tokens")
    assert table["kept"][0] == pytest.approx(1.0)
    assert table["split"][0] == 0.0
    assert table["kept"].to_list() == sorted(table["kept"], reverse=True)
    assert table["kept"][-1] < 0.1
    assert table["falling"][-1] > 0.95 > 0.7 > table["falling"][0]
    chosen = table.filter(pl.col("chosen"))
    assert chosen["kept"].to_list() >= [0.99]
    assert (table["share"] < 1).all()


LOCAL = """
[accelerator]
memory_bytes = 80e9
[accelerator.achievable]
flops_per_s = 2e14
memory_bytes_per_s = 1.6e12
"""
SLOPES = "overlap_memory_slope = {}\noverlap_compute_slope = {}\n"


def test_this_machines_own_slopes_are_used(home):
    """A profile with slopes of 1 overlaps nothing, one with slopes of 0 everything; without any NanoFlow's count.

    Its rates are measured ones, of which kernels reach all: no share of them is taken away.
    """
    given = {"accelerator": "local", "requests": "20,000", "sharings": (0.35,)}

    def rates(slopes="", **more):
        write_atomic(home / "profiles" / "local.toml", LOCAL + slopes + "[cluster]\n")
        found = run("blendserve/retention", **given, **more)
        return found, found.tables["retention"]["tokens_per_s"].to_list()

    _, usual = rates()
    one, alone = rates(SLOPES.format(1.0, 1.0))
    _, whole = rates(SLOPES.format(0.0, 0.0))
    assert alone == rates(overlap="one after the other")[1]
    assert whole == rates(overlap="perfect")[1]
    assert alone[-1] < usual[-1] < whole[-1]
    assert rates(SLOPES.format(1.0, 1.0), overlap="perfect")[1] == whole, "a choice of the reader comes first"
    cited = {row.quantity: row.value for row in one.sources}
    assert (cited["local: slope a of overlap"], cited["local: slope b of overlap"]) == ("1", "1")

    write_atomic(home / "profiles" / "local.toml", LOCAL + "[cluster]\n")
    table = run("blendserve/dfs-share", accelerator="local", requests="20,000").tables["shares"]
    write_atomic(home / "profiles" / "local.toml", LOCAL + SLOPES.format(1.0, 1.0) + "[cluster]\n")
    own = run("blendserve/dfs-share", accelerator="local", requests="20,000").tables["shares"]
    chosen = run(
        "blendserve/dfs-share", accelerator="local", requests="20,000", memory_slope=1.0, compute_slope=1.0
    ).tables["shares"]
    assert own["seconds"].to_list() == chosen["seconds"].to_list()
    assert (own["seconds"] > table["seconds"]).all()


def test_small_pools_answer_the_questions_that_large_ones_do():
    """Videos of 2,000 tokens make a pool of 20,000 requests long enough; those of 16,000 do not."""
    sizes = {"sizes": (20_000,)}
    short, usual = (
        run("blendserve/run-length", video_tokens=tokens, **sizes).tables["lengths"].filter(pl.col("system") == BLEND)
        for tokens in (2_000, 16_000)
    )
    assert short["tail"][0] < 0.05 < usual["tail"][0]
    small = {"requests": "20,000", "video_tokens": 2_000, "sharings": (0.35,)}
    few = run("blendserve/retention", groups=5, **small).tables["retention"]
    many = run("blendserve/retention", groups=2000, **small).tables["retention"]
    kept = [dict(table.select("system", "kept").iter_rows())[KEPT] for table in (few, many)]
    assert kept[0] > 0.9 > 0.5 > kept[1], "a few prefixes stay, two thousand do not fit"


def test_more_samples_miss_less():
    table = run("blendserve/sampling", requests="20,000", shares=(0.01, 0.1, 1.0)).tables["sampling"]
    subtree = table.filter(pl.col("way") == "subtree").sort("sampled")
    assert subtree["relative_error"][-1] == 0.0
    widths = subtree["error_high"] - subtree["error_low"]
    assert widths[0] > widths[1] > widths[2] == 0
    assert (table["error_low"] <= table["relative_error"]).all()


def test_lengths_of_a_trace_keep_their_spread():
    with pytest.raises(wb.errors.UserError, match="leave their spread at 1"):
        run("blendserve/sampling", main="azure-code-2023-like", spread=2.0)


@pytest.mark.parametrize(
    ("source", "sum_of_six"), [("BurstGPT", 7.45), ("Azure", 7.31), ("ShareGPT", 6.87), ("WildChat", 6.88)]
)
def test_printed_means_of_the_four_sources(source, sum_of_six):
    """Added up by hand from the printed maps, densities 1.00, 1.20, 1.40 and sharing ratios 0.25, 0.35."""
    assert four_sources.printed(source) == pytest.approx(sum_of_six / 6)


@pytest.mark.parametrize(
    ("id", "given", "words"),
    [
        ("blendserve/run-length", {"sizes": (100_000,)}, "'sizes' holds no size .* those above 50,000 requests"),
        ("blendserve/window", {"windows_h": (0.05,), "load": 0.3}, "'windows_h' holds no window of 4,000 to 200,000"),
        ("blendserve/window", {"windows_h": (12.0,)}, "'windows_h' holds no window of 4,000 to 200,000"),
    ],
)
def test_nothing_that_could_be_run_is_said(id, given, words):
    with pytest.raises(wb.errors.UserError, match=words):
        running.run(spec.find(id), given, backends="compiled", quick=True)


def test_a_window_that_is_named_instead_can_be_asked_for():
    """A fast GPU has enough requests in half a minute, but windows begin at 0.05 h."""
    given = {"accelerator": "h100-80gb-sxm", "load": 1.2}
    with pytest.raises(wb.errors.UserError, match=r"give one from 0\.05 to [\d.]+ h\.$") as refused:
        running.run(spec.find("blendserve/window"), {**given, "windows_h": (12.0,)}, backends="compiled", quick=True)
    fewest, largest = map(float, re.findall(r"[\d.]*\d(?= to | h)", str(refused.value))[-2:])
    assert fewest < largest < 12.0
    there = running.run(
        spec.find("blendserve/window"), {**given, "windows_h": (fewest,)}, backends="compiled", quick=True
    )
    assert there.tables["windows"]["window_h"].unique().to_list() == [fewest]


def test_only_blendserve_scans_from_both_ends():
    """Another way to scan leaves the other orders as they are: their run is not made again."""
    costs = costs_for(Context("compiled"), "llama-3-8b", "a100-80gb-sxm")
    setup = Setup(costs, "burstgpt-like", 1.4, 0.35, 20_000, 0)
    for system in (NF_DFS, NF_BALANCE):
        assert served(setup, system, scan=BIASED) is served(setup, system)
    assert served(setup, BLEND, scan=BIASED) is not served(setup, BLEND)


def test_a_map_with_cells_that_no_mix_has_names_them_and_draws_the_rest():
    """WildChat, MMLU and OpenVid bound the densities: three times as much compute as memory is beyond them."""
    given = {"densities": (3.0, 1.0), "sharings": (0.2, 0.3), "requests": "20,000"}
    found = run("blendserve/fig15", **given)
    table = found.tables["cells"]
    assert table["gain"].is_null().to_list() == [True, True, False, False]
    assert found.sentence.endswith(" There is no mix for density 3, sharing 0.2; density 3, sharing 0.3.")
    drawn = sketch(found)["data"][0]
    assert drawn["text"][1] == ["no mix", "no mix"]
    assert drawn["z"][1] == [None, None]
    alone = run("blendserve/fig15", **{**given, "densities": (1.0,)})
    assert alone.tables["cells"]["gain"].to_list() == table["gain"][2:].to_list()
    with pytest.raises(UserError, match="No mix of WildChat, MMLU, OpenVid has a density of 3 and a sharing ratio"):
        run("blendserve/fig15", **{**given, "densities": (3.0,)})
    with pytest.raises(UserError, match="has a density of 3 "):  # means of unequal cells say nothing
        run("blendserve/four-sources", densities=(3.0, 3.0), sharings=(0.3,), requests="20,000")
