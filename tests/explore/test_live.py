"""Figures that follow their sketches."""

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
