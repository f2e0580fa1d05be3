"""Browsing a paper's catalogue: what is there, why the rest is not, and what is closed on the way."""

import polars as pl
import pytest

from workbench.catalogue import published
from workbench.errors import UnknownName
from workbench.explore.browser import Browser


@pytest.fixture
def figure_17_has_no_entry(monkeypatch):
    """As long as a catalogue has all its entries, one row is made to name none."""
    named = pl.when(pl.col("row") == "Fig 17").then(pl.lit("blitzscale/none")).otherwise(pl.col("experiment"))
    rows = published.rows().with_columns(experiment=named)
    monkeypatch.setattr(published, "rows", lambda: rows)


def test_browsing_a_paper_shows_what_is_there_and_why_the_rest_is_not(figure_17_has_no_entry):
    browser = Browser("blitzscale")
    missing = next(value for label, value in browser.select.options if label.startswith("○ Fig 17"))
    browser.select.value = missing
    assert "no entry in this version" in browser._place.children[0].value
    browser = Browser("lambdascale")
    labels = [label for label, _ in browser.select.options]
    assert any(label.startswith("● Fig 5") for label in labels)
    table1 = next(value for label, value in browser.select.options if "Tab 1" in label)
    browser.select.value = table1
    assert "no entry" not in browser._place.children[0].value
    assert browser._message.value == ""


def pick(browser, label):
    browser.select.value = next(value for text, value in browser.select.options if label in text)


def test_browsing_back_and_forth_keeps_as_many_widgets_and_stops_what_ran(held_run, figure_17_has_no_entry):
    from ipywidgets.widgets.widget import _instances

    browser = Browser("blitzscale")
    for label in ("Fig 13", "Fig 9"):
        pick(browser, label)
    count = len(_instances)  # of figure 9, and of figure 13, which goes at the next pick
    pick(browser, "Fig 17")
    assert len(_instances) < count
    for label in ("Fig 13", "Fig 9"):
        pick(browser, label)
    assert len(_instances) == count
    explorer = browser._shown
    explorer.buttons["simpy"].click()
    assert held_run.started.wait(30)
    pick(browser, "Fig 17")
    held_run.release.set()
    explorer.wait(30)
    assert not any("simulation" in (trace.name or "") for trace in explorer._figure.data)
    assert "no entry in this version" in browser._place.children[0].value


@pytest.mark.parametrize("paper", [3, None, ["lambdascale"]])
def test_a_paper_that_is_no_name_is_refused_in_one_sentence(paper):
    with pytest.raises(UnknownName, match=r"There is no paper named"):
        Browser(paper)
