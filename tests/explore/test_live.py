"""Figures that follow their sketches."""

import plotly.graph_objects as go

from workbench.explore.live import EMPTY, follow, live
from workbench.figures.base import TEMPLATE

AXES = ("xaxis", "yaxis", "xaxis2", "yaxis2")
SHOWN = {"template": TEMPLATE, "height": 420, "yaxis": {"visible": False}, "xaxis2": {}, "yaxis2": {}}
TRACES = [{"type": "scatter", "x": [1, 2], "y": [3, 4], "xaxis": axis} for axis in ("x", "x2")]


def test_a_figure_of_nothing_has_no_axes():
    figure = live()
    assert [figure.layout[name].visible for name in AXES[:2]] == [False, False]
    for _ in range(2):
        follow(figure, {"data": TRACES, "layout": SHOWN})
        assert [figure.layout[name].visible for name in AXES] == [True, False, True, True]
        assert figure.layout.height == 420
        follow(figure, EMPTY)
        assert [figure.layout[name].visible for name in AXES] == [False] * 4
        assert figure.layout.height == 200


def test_only_what_changes_is_told():
    """Marks, notes and a title that go and come; and a second time the same, of which the page hears nothing."""
    line = {"type": "scatter", "x": [1, 2], "y": [3, 4], "line": {"color": "#123456", "width": 2}}
    note, mark = {"x": 1, "y": 2, "text": "a"}, {"type": "line", "x0": 0, "x1": 1, "y0": 0, "y1": 1}
    plain = {"template": TEMPLATE, "title": {"text": "one"}, "xaxis": {"title": {"text": "x"}}}
    steps = [
        {"data": [line], "layout": plain},
        {"data": [line], "layout": {**plain, "annotations": [note, {**note, "text": "b"}], "shapes": [mark]}},
        {"data": [{**line, "y": [5, 6]}], "layout": {**plain, "annotations": [note]}},
        {"data": [{**line, "line": {"color": "#654321"}}], "layout": {**plain, "title": {"text": "two"}}},
    ]
    figure, said = live(steps[0]), []
    figure.observe(said.append)
    for step in steps[1:]:
        follow(figure, step)
        assert said
        shown, wanted = figure.to_dict(), go.Figure(step).to_dict()
        assert [{name: trace[name] for name in trace if name != "uid"} for trace in shown["data"]] == wanted["data"]
        assert {name: value for name, value in shown["layout"].items() if value != []} == wanted["layout"]
        said.clear()
        follow(figure, step)
        assert said == []


def test_axes_that_are_new_are_told_before_anything_of_those_that_are_there():
    """Plotly draws all rows over each other where it hears of a second axis after it has changed the first."""
    figure, said = live(), []
    figure.observe(lambda change: said.append(change["new"]), names="_py2js_update")
    axes = {"xaxis": {"domain": [0, 1]}, "xaxis2": {"anchor": "y2"}, "yaxis2": {"anchor": "x2"}}
    follow(figure, {"data": TRACES, "layout": {**SHOWN, **axes}})
    told = list(said[0]["layout_data"])
    assert {name.split(".")[0] for name in told[: told.index("xaxis.visible")]} >= set(AXES[2:])
    assert not {name.split(".")[0] for name in told[told.index("xaxis.visible") :]} & set(AXES[2:])


def test_lines_and_notes_are_told_after_traces_of_new_rows():
    """Before these are there plotly draws neither."""
    figure, said = live(), []
    figure.observe(lambda change: said.append(change) if change["new"] else None)
    note = {"x": 1, "y": 2, "text": "a"}
    follow(figure, {"data": TRACES, "layout": {**SHOWN, "annotations": [note]}})
    told = [change["name"] for change in said if change["name"].startswith("_py2js")]
    assert told.index("_py2js_addTraces") < max(index for index, name in enumerate(told) if name == "_py2js_relayout")
    assert figure.layout.annotations[0].text == "a"
