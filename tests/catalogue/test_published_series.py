"""Names of published series in code: one that no row of the facts bears draws and judges nothing, unnoticed."""

import sys

import pytest
from quick_runs import alone

from workbench.catalogue import published, spec
from workbench.figures import base, draw

IDS = [id for id in spec.all_specs() if len(published.published(id))]


@pytest.mark.parametrize("id", IDS)
def test_verdicts_name_series_that_exist(id):
    points = published.published(id)
    for match in spec.find(id).matches:
        assert set(match.series) <= set(points["series"])
        assert match.fitted == spec.ALL or set(match.fitted) <= set(points["x"])
        assert set(match.incomparable) <= set(points["x"])


@pytest.mark.parametrize("id", IDS)
def test_figures_name_series_that_exist(id, monkeypatch):
    entry, named, true = spec.find(id), set(), base.published_marks

    def marks(outcome, palette, **options):
        named.update(options.get("series") or ())
        return true(outcome, palette, **options)

    outcome = alone(id, entry.backends[0])
    draw(outcome)  # imports the module that draws it
    for name, module in list(sys.modules.items()):
        if name.startswith("workbench.figures") and hasattr(module, "published_marks"):
            monkeypatch.setattr(module, "published_marks", marks)
    for panel in (None, *entry.panels):
        draw(outcome, panel)
    assert named <= set(published.published(id)["series"])
