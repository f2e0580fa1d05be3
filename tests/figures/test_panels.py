"""Figures of several panels."""

import pytest

import workbench as wb
from workbench.errors import UserError


def test_a_long_title_of_a_panel_breaks_into_lines_that_fit_a_narrow_page():
    result = wb.experiment("theory/approximations").run("analytic")
    short, long = (note.text for note in result.figure().layout.annotations)
    assert short == "4 servers, where the exact wait is known"
    first, second = long.split("<br>")
    assert len(first) <= 64 < len(first) + 1 + len(second.split()[0])
    assert f"{first} {second}".endswith("(squared CVs 4 and 4) and what the formulas say of all of them")


def test_a_panel_that_only_other_backends_fill_is_refused_in_a_sentence():
    result = wb.experiment("chains/concurrency").run("analytic", quick=True)
    with pytest.raises(UserError, match="nothing for panel 'stream', only for slow-down, alone; add a backend"):
        result.figure("stream")
