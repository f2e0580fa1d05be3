"""Figures of several runs: a line and a row of bars have one value a place, the mean where runs differ."""

import pytest

from workbench.catalogue import running, spec
from workbench.figures import sketch

IDS = ("blitzscale/redundancy", "chains/bursts", "chains/tab1", "showdown/burst", "showdown/pool", "showdown/savings")


def of(id, runs):
    backends = [name for name in spec.find(id).backends if name in ("analytic", "compiled")]
    return running.run(spec.find(id), {}, backends=backends, quick=True, replications=runs)


def lengths(id, runs):
    traces = sketch(of(id, runs))["data"]
    return [(trace.get("name"), len(trace["x"])) for trace in traces if trace.get("mode") != "markers"]


@pytest.mark.parametrize("id", IDS)
def test_three_runs_draw_as_many_lines_and_places_as_one(id):
    assert lengths(id, 3) == lengths(id, 1)


def test_a_line_is_the_mean_of_the_runs():
    found = of("showdown/pool", 3)
    table = found.tables["active"].filter(backend="compiled")
    assert table.group_by("models").len()["len"].to_list() == [3] * table["models"].n_unique()
    (line,) = (trace for trace in sketch(found)["data"] if trace["name"] == "active models (compiled)")
    for models, mean in zip(line["x"], line["y"], strict=True):
        assert mean == pytest.approx(table.filter(models=models)["mean_active"].mean())
