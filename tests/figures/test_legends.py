"""Names in the legend of a page 900 pixels wide."""

import pytest

from workbench.figures.base import LEGEND_ROW, NAME_LETTERS, figure, settle
from workbench.figures.canvas import scatter

LONG = "job servers needed, optimal ILP with slot constraints, x = share of GCA's total rate (own calculation)"


@pytest.mark.parametrize("scale", [1, 2])
def test_a_long_name_is_broken_into_lines_that_fit_and_gets_room_for_them(scale):
    short, made = figure("", "", ""), figure("", "", "")
    settle(short.add(scatter([1], [1], name="short")), 560 // scale)
    settle(made.add(scatter([1], [1], name=LONG)), 560 // scale)
    lines = made.data[0]["name"].split("<br>")
    assert " ".join(lines) == LONG
    assert 2 <= len(lines) <= 1 + len(LONG) * scale // (NAME_LETTERS - 12)
    assert max(map(len, lines)) <= NAME_LETTERS / scale
    assert made.layout["height"] - short.layout["height"] == LEGEND_ROW * (len(lines) - 1)
