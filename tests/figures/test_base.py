"""Marks mean the same in every figure, and the legend never covers an axis title."""

import polars as pl
import pytest

from workbench.catalogue import running, spec
from workbench.figures import draw
from workbench.figures.base import GREY, INK, Palette, curve, figure, published_marks, settle
from workbench.figures.text import alert, details, escape, number, table_html


@pytest.fixture(scope="module")
def outcome():
    return running.run(spec.find("lambdascale/nccl-honest"), {})


def test_a_formula_is_a_line_and_a_simulation_a_circle(outcome):
    table = outcome.tables["times"].filter(pl.col("series") == "ring broadcast")
    line, circles = curve(table, "ranks", "complete_s", "ring broadcast", Palette())
    assert (line["mode"], circles["mode"]) == ("lines", "markers")
    assert circles["marker"]["symbol"] == "circle-open"
    assert line["line"]["color"] == circles["marker"]["color"]


def test_published_values_are_open_diamonds_with_their_source(outcome):
    (trace,) = published_marks(outcome, Palette(), series={"raw NCCL broadcast, 13B, x = ranks": "ring broadcast"})
    assert trace["marker"]["symbol"] == "diamond-open"
    assert trace["x"] == [2.0, 4.0, 8.0, 12.0]
    assert "artifact slurm" in trace["text"][0]
    grey = outcome.model_copy(update={"comparable": False})
    (trace,) = published_marks(grey, Palette(), series={"raw NCCL broadcast, 13B, x = ranks": "ring broadcast"})
    assert trace["marker"]["color"] == GREY
    known = {"raw NCCL broadcast, 13B, x = ranks": "ring broadcast"}
    (trace,) = published_marks(outcome, Palette(), series=known, on_bars=True)
    assert trace["marker"]["color"] == trace["marker"]["line"]["color"] == GREY


def test_settle_grows_with_the_legend():
    few = settle(figure("t", "x", "y").add({"name": "a"})).layout["height"]
    many = settle(figure("t", "x", "y").add(*({"name": f"series {i}" * 5} for i in range(12)))).layout["height"]
    assert many > few


def test_html_pieces_escape_what_they_are_given():
    table = pl.DataFrame({"<b>": ["<script>"], "verdict": ["differs"]})
    shown = table_html(table, "<i>", shade="verdict")
    assert "<script>" not in shown
    assert "<i>" not in shown
    assert "&lt;script&gt;" in shown
    assert escape("<") == "&lt;"
    assert alert("") == ""
    assert 'role="alert"' in alert("x")
    assert "&lt;" in details("<", "inside")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), (1.23456789, "1.2346"), ([1.0, 2.0], "1 to 2"), ("a", "a"), (True, "yes"), (False, "no")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_numbers_in_a_grid_are_written_once_and_stand_out():
    """Late cells are see-through, so their numbers are grey; on coloured ones plotly chooses black or white."""
    figure = draw(running.run(spec.find("theory/schedule"), {"step": 4}, backends="analytic"))
    pale, coloured = (trace for trace in figure.data if trace.type == "heatmap")
    texts = [[bool(text) for line in trace.text for text in line] for trace in (pale, coloured)]
    assert [one != other for one, other in zip(*texts, strict=True)] == [True] * 64
    shown = [value is not None for line in coloured.z for value in line]
    assert shown == texts[1]
    assert pale.textfont.color == INK
    assert coloured.textfont.color is None
