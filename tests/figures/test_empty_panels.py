"""A panel in which the backends that ran draw nothing says so."""

import pytest

from workbench.catalogue import running, spec
from workbench.figures import sketch
from workbench.figures.panels import EMPTY


@pytest.mark.parametrize(("id", "row"), [("aegaeon/fig1", 1), ("blitzscale/fig3", 0)])
def test_a_panel_that_only_a_simulation_fills_says_so(id, row):
    entry = spec.find(id)
    layout = sketch(running.run(entry, {}, backends="analytic"))["layout"]
    notes = [note for note in layout["annotations"] if note["text"] == EMPTY]
    assert len(notes) == 1
    low, high = layout[f"yaxis{row + 1 if row else ''}"]["domain"]
    assert low < notes[0]["y"] < high


def test_a_panel_with_something_in_it_says_no_such_thing():
    entry = spec.find("theory/schedule")
    assert EMPTY not in str(sketch(running.run(entry, {}, backends="analytic"))["layout"])
