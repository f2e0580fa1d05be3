"""Bars about a mean of several independent runs are those of the mean, not the mean of the runs' own."""

import numpy as np
import polars as pl
import pytest

from workbench.catalogue import running, spec
from workbench.figures import sketch

RUNS = 4


def drawn(id):
    """The tables of four quick compiled runs, and the traces that have error bars."""
    found = running.run(spec.find(id), {}, backends="compiled", quick=True, replications=RUNS)
    return found.tables, [trace for trace in sketch(found)["data"] if trace.get("error_y")]


def test_intervals_of_a_wait():
    tables, (trace,) = drawn("theory/queues")
    table = tables["response"]
    bars = trace["error_y"]
    for x, mean, *ends in zip(trace["x"], trace["y"], bars["array"], bars["arrayminus"], strict=True):
        part = table.filter(load=x)
        assert len(part) == RUNS
        half = np.linalg.norm(part["high_s"] - part["low_s"]) / 2 / RUNS
        assert mean == pytest.approx(part["response_s"].mean())
        assert ends == pytest.approx([half, half], rel=1e-6)
        assert half < 0.7 * (part["high_s"] - part["low_s"]).mean() / 2  # 0.5 where runs are alike


@pytest.mark.parametrize(
    ("id", "table", "x"), [("chains/bounds", "response", "load"), ("chains/bound-gap", "gap", None)]
)
def test_standard_errors_of_a_response(id, table, x):
    tables, traces = drawn(id)
    assert all("3 standard errors" in trace["name"] for trace in traces)
    axes = [x] if x else tables[table]["axis"].unique(maintain_order=True).to_list()
    assert len(traces) == len(axes)
    for axis, trace in zip(axes, traces, strict=True):
        rows = tables[table] if x else tables[table].filter(axis=axis)
        for value, mean, bar in zip(trace["x"], trace["y"], trace["error_y"]["array"], strict=True):
            part = rows.filter(pl.col(axis) == value)
            assert len(part) >= RUNS
            assert mean == pytest.approx(part["response_s"].mean())
            assert bar == pytest.approx(3 * np.linalg.norm(part["error_s"]) / len(part))
