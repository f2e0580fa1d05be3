"""The files of published facts: well-formed, every id in the catalogue's rows, numbers typed anew from the sources."""

import re

import polars as pl
import pytest

from workbench.catalogue.spec import all_specs
from workbench.paths import facts_folder

PAPERS = ("lambdascale", "blitzscale", "aegaeon", "chains", "blendserve")
POINT_COLUMNS = ["experiment", "series", "x", "value", "low", "high", "unit", "kind", "source"]
ROW_COLUMNS = [
    "paper", "row", "experiment", "title", "x_axis", "y_axis", "curves", "how", "judged_by", "not_possible_reason",
]  # fmt: skip
CLAIM_COLUMNS = ["paper", "claim", "reading", "correction", "experiment", "source"]
KINDS = {"published", "read off a figure", "recorded in the artifact", "rerun", "secondary", "computed"}
UNITS = {"1", "s", "1/s", "bytes", "bytes/s", "bytes s", "tokens", "tokens/s", "steps", "FLOP/s", "currency/h"}
READINGS = {"true", "true only if", "false", "unverifiable"}
HOW = {"formula", "simulation", "real run"}
ID = re.compile(
    "(lambdascale|blitzscale|aegaeon|chains|blendserve)/"
    r"(fig[1-9]\d*|tab[1-9]\d*|(?!fig\d|tab\d)[a-z][a-z0-9]*(-[a-z0-9]+)*)"
)
GBIT_PER_S = 1e9 / 8


def _points(paper: str) -> pl.DataFrame:
    path = facts_folder() / "published" / f"{paper}.csv"
    table = pl.read_csv(path, infer_schema=False).fill_null("")
    assert table.columns == POINT_COLUMNS
    return table.with_columns(
        pl.when(pl.col(name) != "").then(pl.col(name)).cast(pl.Float64).alias(name) for name in ("value", "low", "high")
    )


def _table(name: str, columns: list[str]) -> pl.DataFrame:
    table = pl.read_csv(facts_folder() / name, infer_schema=False).fill_null("")
    assert table.columns == columns
    return table


def _rows() -> pl.DataFrame:
    return _table("published/rows.csv", ROW_COLUMNS)


def _claims() -> pl.DataFrame:
    return _table("claims.csv", CLAIM_COLUMNS)


@pytest.mark.parametrize("name", [f"published/{paper}.csv" for paper in PAPERS] + ["published/rows.csv", "claims.csv"])
def test_files_are_plain_utf8_with_unix_lines(name):
    content = (facts_folder() / name).read_bytes()
    content.decode("utf-8")
    assert b"\r" not in content
    assert content.endswith(b"\n")
    assert not content.endswith(b"\n\n")


@pytest.mark.parametrize("paper", PAPERS)
def test_points_are_well_formed(paper):
    table = _points(paper)
    wrong = [name for name in table["experiment"].unique() if not ID.fullmatch(name) or not name.startswith(paper)]
    assert not wrong
    assert set(table["kind"]) <= KINDS
    assert set(table["unit"]) <= UNITS
    assert not table.filter((pl.col("series") == "") | (pl.col("source") == "")).height
    assert not table.filter(pl.all_horizontal(pl.col("value", "low", "high").is_null())).height
    assert not table.filter(pl.any_horizontal(pl.col("value", "low", "high").is_infinite())).height


@pytest.mark.parametrize("paper", PAPERS)
def test_values_lie_between_their_edges(paper):
    table = _points(paper)
    outside = (pl.col("value") < pl.col("low")) | (pl.col("value") > pl.col("high")) | (pl.col("low") > pl.col("high"))
    assert table.filter(outside).to_dicts() == []


@pytest.mark.parametrize("paper", PAPERS)
def test_a_point_is_named_once(paper):
    twice = _points(paper).group_by("experiment", "series", "x").len().filter(pl.col("len") > 1)
    assert twice.to_dicts() == []


@pytest.mark.parametrize("paper", PAPERS)
def test_edges_say_whose_they_are(paper):
    """An edge is a published range, a spread, or our own acceptance rule; the source tells which."""
    edged = _points(paper).filter(pl.col("low").is_not_null() | pl.col("high").is_not_null())
    words = "acceptance|as published|as quoted|must match exactly|spread|to be met"
    silent = edged.filter(~pl.col("source").str.contains(words))
    assert silent.select("experiment", "series").to_dicts() == []


def test_rows_are_well_formed():
    rows = _rows()
    assert set(rows["paper"]) == set(PAPERS)
    for row in rows.iter_rows(named=True):
        assert ID.fullmatch(row["experiment"]), row
        assert row["experiment"].split("/")[0] == row["paper"]
        assert set(row["how"].split(" + ")) <= HOW, row
        assert row["row"], row
        assert row["title"], row
        assert row["judged_by"], row
    assert not rows.select("paper", "row", "experiment").is_duplicated().any()


def test_only_what_cannot_be_judged_has_a_reason():
    """The notes name exactly three: a table never read, a private trace, a figure whose data cannot be traced."""
    refused = _rows().filter(pl.col("not_possible_reason") != "")["experiment"].to_list()
    assert refused == ["lambdascale/tab1", "aegaeon/fig18", "chains/service-time-test"]


def test_rows_are_named_by_parts_of_the_paper_not_of_our_notes():
    named = re.compile(
        r"(Fig|Tab|Table|Alg) ?\d.*|§\d[\d.]*( sampling| splits)?|Appendix A\.\d|Ablation.*|Real run.*"
        r"|Check|Artifact logs|Tech report, .*|(Tuning|Best c|Overall) \(.*\)"
    )
    assert [row for row in _rows()["row"] if not named.fullmatch(row)] == []


def test_figures_of_blitzscale_stand_in_order():
    """The others are in reading order already; the rows of BlitzScale once began with Figures 1, 2, 5, 6, 3."""
    rows = _rows().filter(pl.col("paper") == "blitzscale")["row"]
    figures = [int(row.split()[1]) for row in rows if row.startswith("Fig ")]
    assert figures == sorted(figures)


def test_a_claim_has_a_subject():
    assert not _claims()["claim"].str.contains("^(It|They|Its) ").any()


def test_claims_are_well_formed():
    claims = _claims()
    assert set(claims["paper"]) == set(PAPERS)
    assert set(claims["reading"]) <= READINGS
    for row in claims.iter_rows(named=True):
        assert all(row.values()), row
        assert row["experiment"].split("/")[0] == row["paper"], row
        assert row["correction"].endswith("."), row
    assert not claims["claim"].is_duplicated().any()


def test_every_id_is_in_the_rows():
    known = set(_rows()["experiment"])
    for path in sorted((facts_folder() / "published").glob("*.csv")):
        used = pl.read_csv(path, columns=["experiment"], infer_schema=False)["experiment"].unique().to_list()
        assert {name for name in used if name.split("/")[0] in PAPERS} <= known, path.name
    assert set(_claims()["experiment"]) <= known


def test_every_claim_is_shown_by_an_experiment_that_there_is():
    assert set(_claims()["experiment"]) <= set(all_specs())


def test_no_catalogue_row_is_missing():
    """Figure and table numbers of the five catalogues, typed from their first columns."""
    expected = {
        "lambdascale": "fig1 fig2 fig3 fig5 fig6 fig7 fig8 fig9 fig10 fig11 tab1 block-count reorder packing "
        "warm-start keep-alive mode-switch early-serving paced-multicast streamed-start block-size-sweep slow-link "
        "nccl-honest",
        # drawings (Fig 2, 5, 6, 10-12) go with tab1, plan and live-cluster; Fig 7 with 8, Fig 16 with 15
        "blitzscale": " ".join(f"fig{n}" for n in (1, 3, 4, 8, 9, 13, 14, 15, *range(17, 25)))
        + " tab1 tab2 o1-caching plan plan-gap redundancy live-cluster cross",
        "aegaeon": "fig1 fig2 fig3 fig4 " + " ".join(f"fig{n}" for n in range(6, 19)) + " tab1 quota-example load-time "
        "production q-max prefill-split switch-bandwidth admission buffer-cap fairness split operator",
        "chains": "chain-example compute-profile communication-profile gbp-cr gca dispatchers bounds tuning c-star "
        "overall arrivals-test service-time-test tab1 concurrency assumptions bound-gap online edge-cloud finer-blocks "
        "builder greedy-wrong bursts",
        "blendserve": " ".join(f"fig{n}" for n in range(1, 16)) + " tab1 tab2 tab3 tab4 dfs-share balance-gain "
        "sampling leaf-splits tree-operation overlap orders scanners retention run-length window hardware "
        "balanced-batch real-orders tree-steps threshold four-sources",
    }
    rows = _rows()
    for paper, names in expected.items():
        assert set(rows.filter(pl.col("paper") == paper)["experiment"]) == {f"{paper}/{n}" for n in names.split()}


GOLDEN = [
    # experiment, series (part of it), x, value, low, high: typed from the notes, as text, in their units
    ("lambdascale/fig7", "FaaSNet over FaaScale, largest", "", 1.82, 1.5, 1.9),
    ("lambdascale/fig7", "NCCL over FaaScale, largest", "", 1.53, None, None),
    ("lambdascale/fig8", "first tokens, FaaScale 7B", "k=4", 0.15, 0.10, 0.20),
    ("lambdascale/fig10", "saved against ServerlessLLM", "", 31.3e-2, 21.3e-2, 41.3e-2),
    ("lambdascale/fig10", "GPU time above the ideal scaler", "", None, 4.3e-2, 18.6e-2),
    ("lambdascale/reorder", "rotated order: one node per sub-group", "N=12, k=3, b=16", 7, 7, 7),
    ("lambdascale/keep-alive", "cold starts", "30", 35.3e-2, None, None),
    ("lambdascale/keep-alive", "memory held", "60", 2.100e6 * 1e9, None, None),
    ("lambdascale/nccl-honest", "raw NCCL broadcast, 13B, x", "8", 837.8e-3, None, None),
    ("lambdascale/slow-link", "simulated, x", "64", 0.856, None, None),
    ("blitzscale/fig3", "bandwidth per GPU for a 500 ms stop", "72B, TP4", 576 * GBIT_PER_S, None, None),
    ("blitzscale/fig4", "keep-alive 300 s", "BurstGPT", None, 20e-2, 46e-2),
    ("blitzscale/fig13", "last node", "chain, 8 hops, whole layers (436 MB)", 1.529, 1.529 * 0.99, 1.529 * 1.01),
    ("blitzscale/fig15", "finish time of batch x, ILP-free ZigZag", "7", 29, 29, 29),
    ("blitzscale/fig15", "run on the new instance, best-effort", "7", 2, 2, 2),
    ("blitzscale/fig17", "TTFT reduction against ServerlessLLM", "BurstGPT x 72B", 75.5e-2, 40e-2, 85e-2),
    ("blitzscale/fig18", "GPU time over a full provisioning", "ServerlessLLM", 71.08e-2, 60e-2, 85e-2),
    ("blitzscale/fig21", "loaded, AllCache over BlitzScale", "", 2000 / 1200, 1.4, 1.8),
    ("blitzscale/tab2", "local SSD", "p5.48xlarge (H100)", 9.8 * GBIT_PER_S, None, None),
    ("aegaeon/fig4", "as printed", "M=100, 0.037 per s, 16.79 s", 46.55, None, None),
    ("aegaeon/fig11", "panel b rerun: attainment, Aegaeon", "44", 0.924, None, None),
    ("aegaeon/fig11", "panel a rerun: attainment, ServerlessLLM+", "48", 0.472, None, None),
    ("aegaeon/fig13", "panel b rerun: attainment at SLO x 0.3, Aegaeon", "52", 0.803, None, None),
    ("aegaeon/tab1", "KV bytes per token", "Llama-2-13B", 819_200, 819_200, 819_200),
    ("aegaeon/switch-bandwidth", "without prefetch", str(20 * 10**9), 0.89, None, None),
    ("aegaeon/production", "share of GPUs saved, unrounded", "", 82.1e-2, None, None),
    ("chains/tab1", "response P99", "BPRR", 61.7, None, None),
    ("chains/tab1", "response mean", "Proposed", 7.3, 5, 9),
    ("chains/tuning", "mean response, lower bound", "7", 10.09, None, None),
    ("chains/dispatchers", "mean response, JIQ", "0.9", 148.5, None, None),
    ("chains/gca", "optimal ILP", "0.7", 13.4, None, None),
    ("chains/arrivals-test", "standard deviation over mean", "whole trace", 13.15, 13.14, 13.16),
    ("chains/overall", "mean response, BPRR", "J=20, eta=0.1", 32.0, None, None),
    ("blendserve/fig7", "panel a: BlendServe over NanoFlow-DFS, mean", "8B, four traces", 1.2084, 1.10, 1.30),
    ("blendserve/fig11", "density 1.30", "0.45", 1.33, 1.05, None),
    ("blendserve/fig13", "row 4 of 9", "0.35", 1.31, None, None),
    ("blendserve/fig14", "row 10 of 10", "0.05", 1.16, None, None),
    ("blendserve/fig15", "row 1 of 9", "0.25", 1.07, None, None),
    ("blendserve/tab1", "attention, measured", "768", 1.913e-3, None, None),
    ("blendserve/tab3", "throughput, Trace#4", "4", 24541, None, None),
    ("blendserve/fig6", "right side, exact", "densities 3.73 and 0.096, root 1.27, 60 GB", 40.62e9, 40.52e9, 40.72e9),
]


@pytest.mark.parametrize(("experiment", "series", "x", "value", "low", "high"), GOLDEN)
def test_golden_points(experiment, series, x, value, low, high):
    found = _points(experiment.split("/")[0]).filter(
        (pl.col("experiment") == experiment) & pl.col("series").str.contains(series, literal=True) & (pl.col("x") == x)
    )
    assert found.height == 1, found["series"].to_list()
    row = found.row(0, named=True)
    assert row["value"] == (None if value is None else pytest.approx(value, rel=1e-9))
    if low is not None:
        assert row["low"] == pytest.approx(low, rel=1e-9)
    if high is not None:
        assert row["high"] == pytest.approx(high, rel=1e-9)


def test_sums_that_the_sources_give():
    """Totals printed beside their parts: the arrivals of the artifact's trace, the mean of the printed heat map."""
    counts = _points("lambdascale").filter(pl.col("series").str.starts_with("arrivals in minute"))["value"]
    assert (len(counts), counts.sum()) == (30, 498)
    cells = _points("blendserve").filter(
        (pl.col("experiment") == "blendserve/fig11") & pl.col("series").str.contains("density")
    )
    cells = cells.filter(pl.col("kind") == "published")["value"].drop_nulls()
    assert len(cells) == 65
    assert cells.mean() == pytest.approx(1.2257, abs=5e-5)


ANSWERED = {
    # what popular summaries say, point by point as the notes list it: how many claims each point takes
    "lambdascale": (1, 1, 1, 1, 2, 1, 6),
    "blitzscale": (1, 1, 2, 6, 1, 1, 1, 3),
    "aegaeon": (1, 1, 1, 4, 1, 1, 1, 2, 1, 1, 9),
    "chains": (1,) * 13,
    "blendserve": (1,) * 10 + (2,),
}
ALL_CLAIMS = {"lambdascale": 17, "blitzscale": 27, "aegaeon": 26, "chains": 18, "blendserve": 16}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_point_of_the_popular_summaries_is_answered(paper):
    """Counted by hand in the notes: λScale §8 1-7, BlitzScale §8 22-29, Aegaeon §8.1, chains §8, BlendServe §8.1."""
    claims = _claims().filter(pl.col("paper") == paper)
    popular = claims.filter(pl.col("source").str.contains("popular summary|other summaries"))
    assert (popular.height, claims.height) == (sum(ANSWERED[paper]), ALL_CLAIMS[paper])


@pytest.mark.parametrize(
    ("paper", "claim", "reading", "number"),
    [
        ("lambdascale", "100 GB of weights", "false", "0.80 s"),
        ("blitzscale", "19.46 % less GPU time", "true only if", "27.4 %"),
        ("aegaeon", "gives 46.55", "false", "46.27"),
        ("chains", "30 to 40 %", "false", "76.8 %"),
        ("blendserve", "vLLM and SGLang", "true only if", "1.44"),
    ],
)
def test_golden_claims(paper, claim, reading, number):
    (row,) = [row for row in _claims().iter_rows(named=True) if row["paper"] == paper and claim in row["claim"]]
    assert row["reading"] == reading
    assert number in row["correction"]
