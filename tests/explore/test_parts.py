"""What a run that goes on has found so far is drawn: rows that the whole has too, and nothing is said of the rest."""

import polars as pl
import pytest

from workbench.catalogue import running, spec
from workbench.explore.explorer import Explorer
from workbench.figures import sketch

DRAWN = {
    "aegaeon/fig13": "curve", "blendserve/fig7": "throughput", "blendserve/fig13": "cells",
    "blendserve/hardware": "hardware", "blendserve/orders": "orders", "blendserve/dfs-share": "shares",
}  # fmt: skip


def parts_of(id, **given):
    """The parts of a quick run, all of them, and the whole."""
    parts = []
    return parts, running.run_unjudged(
        spec.find(id), given, backends="compiled", quick=True, so_far=parts.append
    )[0]  # fmt: skip


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(running, "BETWEEN_S", 0.0)


@pytest.mark.parametrize("id", DRAWN)
def test_each_part_holds_the_first_rows_of_the_whole_and_can_be_drawn(id):
    smaller = {"requests": "20,000"} if id.startswith("blendserve/") else {}
    parts, whole = parts_of(id, **smaller)
    name, heights = DRAWN[id], []
    for part in parts:
        rows = part.tables[name]
        assert rows.equals(whole.tables[name].head(len(rows)))
        assert (part.sentence, part.agreement, part.verdicts) == ("", (), ())
        sketch(part)
        heights.append(len(rows))
    for panel in spec.find(id).panels:
        sketch(parts[0], panel)
    assert heights == sorted(set(heights))
    assert len(heights) >= 4
    assert heights[-1] == len(whole.tables[name])
    assert whole.sentence


def test_a_part_of_a_mean_says_of_which_traces_it_is():
    parts, whole = parts_of("blendserve/fig8", requests="40,000")
    alone = parts_of("blendserve/fig8", requests="40,000", trace="Trace#1")[1]
    names = [part.parameters["trace"] for part in parts]
    assert names[:2] == ["Trace#1", "Trace#1, Trace#2"]
    assert "Trace#1, Trace#2" in str(sketch(parts[1])["layout"]["title"])
    assert parts[0].tables["throughput"].equals(alone.tables["throughput"])
    assert parts[-1].tables["throughput"].equals(whole.tables["throughput"])
    assert whole.parameters["trace"] != names[-1]


def test_a_button_shows_parts_of_the_quick_look_before_the_whole(monkeypatch):
    explorer, shown, said = Explorer(spec.find("aegaeon/fig12"), {}), [], []
    show = explorer._show

    def watched(outcome, draw):
        show(outcome, draw)
        shown.append((outcome.mode, outcome.tables["curve"].select(pl.struct("panel", "label").n_unique()).item()))
        said.append(explorer._status.value)
        if outcome.sentence:
            explorer._stop_button.click()

    monkeypatch.setattr(explorer, "_show", watched)
    explorer.buttons["compiled"].click()
    explorer.wait(60)
    assert shown == [*(("quick", count) for count in range(1, 17)), ("quick", 16)]
    assert said[0].startswith("<em>A quick look comes first: ")
    assert explorer._message.value == ""
