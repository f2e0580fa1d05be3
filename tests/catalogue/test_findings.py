"""All comparisons in two tables: each backend's number beside what was published, the worst first."""

import pathlib

import polars as pl
import pytest

import workbench as wb
from workbench.catalogue import findings, running
from workbench.errors import UnknownName, UserError
from workbench.results import READINGS


@pytest.fixture
def found(toy, points, tmp_path):
    """`toy/line` by formula and simulation (1 % more), with the points of `conftest.POINTS`, written and read."""
    points.write_text(points.read_text() + "height,3,12,,,m,published\n")
    outcome = running.run(toy, {}, backends=("analytic", "simpy"), points=str(points))
    findings.write_findings([outcome], tmp_path)
    return wb.findings(tmp_path)


def test_each_point_has_the_number_of_each_backend(found):
    """Heights are 2, 4 and 6 m by formula; where x is 2 the reader's points say 5 m."""
    row = found.verdicts.filter(pl.col("claim").str.contains("height"), pl.col("published").str.starts_with("5 m"))
    assert row.select("formula", "simulation").row(0) == pytest.approx((4.0, 4.04))
    assert row["real"].to_list() == [None]
    assert row["unit"].to_list() == ["m"]


def test_the_farthest_off_of_those_that_differ_comes_first(found):
    """4 m lies 15.8 % below 4.75 m, the lower edge of 5 m less 5 %; 6 m lies 47.4 % below 11.4 m, that of 12 m."""
    differing = found.verdicts.filter(verdict="differs")
    assert differing["off"].to_list() == pytest.approx([6 / 11.4 - 1, 4 / 4.75 - 1])
    assert found.verdicts["verdict"].to_list()[:2] == ["differs", "differs"]
    inside = found.verdicts.filter(pl.col("verdict") == "reproduced", pl.col("strength") != "ordering")
    assert (inside["off"] == 0).all()


def test_agreement_is_a_share_of_what_is_allowed(found):
    """SimPy answers 1 % more where 2 % are allowed."""
    (row,) = found.agreement.to_dicts()
    assert (row["first"], row["second"], row["agrees"]) == ("analytic", "simpy", True)
    assert row["share"] == pytest.approx(0.5)


def test_counts_add_up(found):
    for by in ("strength", "paper", "experiment"):
        assert found.counts(by)["all"].sum() == len(found.verdicts)
    with pytest.raises(UnknownName, match="strength"):
        found.counts("strengths")
    with pytest.raises(UnknownName, match="verdict"):
        found.counts("verdict")


def test_one_reading_is_shown_whole(found):
    table = found.read("differs", "toy")
    assert table.columns == ["experiment", "claim", "unit", "formula", "simulation", "ours", "published", "strength",
                             "off", "reason"]  # fmt: skip
    assert table._repr_html_().count("<tr>") == 1 + 2
    with pytest.raises(UnknownName, match="differs"):
        found.read("differ")
    with pytest.raises(UnknownName, match="toy"):
        found.read("differs", "toyy")


def test_the_figure_shows_every_verdict_and_comparison(found):
    data = found.figure().data
    assert sum(sum(trace.y) for trace in data if trace.type == "bar") == len(found.verdicts)
    dots = [trace for trace in data if trace.type == "scatter"]
    assert sum(len(trace.x) for trace in dots) == len(found.verdicts.filter(verdict="differs")) + len(found.agreement)


def test_bad_folders_are_refused_in_a_sentence(found, tmp_path):
    with pytest.raises(UserError, match=r"verdicts\.csv is not there; `workbench reproduce all`"):
        wb.findings(tmp_path / "nothing")
    for broken in ("", "a,b\n1,2\n", "\x00\xff"):
        (tmp_path / "agreement.csv").write_text(broken)
        with pytest.raises(UserError, match=r"agreement\.csv is no table of findings"):
            wb.findings(tmp_path)
    (tmp_path / "verdicts.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"verdicts\.csv is no table of findings"):
        wb.findings(tmp_path)


def test_readme_report_and_tables_of_the_gallery_count_the_same():
    """The line of counts below the same head, in README and in the gallery's report, is that of the gallery's table."""
    folder = pathlib.Path(__file__).parents[2]
    tally = dict(wb.findings().verdicts["verdict"].value_counts().rows())
    line = "| " + " | ".join(str(tally.get(name, 0)) for name in READINGS) + " |"
    for name in ("README.md", "figures/REPORT.md"):
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        assert line == lines[lines.index("| " + " | ".join(READINGS) + " |") + 2], name


def test_nothing_compared_is_an_empty_table(tmp_path):
    findings.write_findings([], tmp_path)
    empty = wb.findings(tmp_path)
    assert (len(empty.verdicts), len(empty.agreement)) == (0, 0)
    assert empty.counts().is_empty()
