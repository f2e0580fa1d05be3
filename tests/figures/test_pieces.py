"""Runs cut into fewer pieces than the formula are told so, with the formula for that number beside them."""

import re
import sys

import pytest

from workbench.catalogue import running, spec
from workbench.figures import sketch

REAL_UNITS = 32
"""Both experiments cut a real run into at most 32 pieces."""


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)


def traces(id, backends):
    return sketch(running.run(spec.find(id), {}, backends=backends))["data"]


def named(found, *words):
    return [trace for trace in found if all(word in trace.get("name", "") for word in words)]


@pytest.mark.parametrize(
    ("id", "series", "word"),
    [("blitzscale/fig13", "chain, small units", "units"), ("lambdascale/slow-link", "chain", "blocks")],
)
def test_a_real_run_names_its_pieces_and_has_the_formula_for_them(no_torch, id, series, word):
    found = traces(id, ("analytic", "torch"))
    (real,) = named(found, f"{series}, {REAL_UNITS} {word} (recorded run)")
    (same,) = named(found, f"{series}, {REAL_UNITS} {word} (formula)")
    formula = dict(zip(same["x"], same["y"], strict=True))
    finest = next(trace for trace in named(found, series, "(formula)") if trace is not same)
    assert finest["y"] != same["y"]
    for x, y in zip(real["x"], real["y"], strict=True):
        assert formula[x] == pytest.approx(y, rel=0.1)


def test_the_formula_for_32_units_is_drawn_by_hand_calculation(no_torch):
    """k hops of u units of S bytes over B bytes/s last (u + k - 1) S / (u B): 16.06 GB in 32 units over 12.5 GB/s."""
    (same,) = named(traces("blitzscale/fig13", ("analytic", "torch")), "chain, small units, 32 units (formula)")
    assert same["y"] == pytest.approx([(32 + k - 1) * 16.0605e9 / 32 / 12.5e9 for k in range(1, 9)], rel=1e-4)


def test_bars_of_unequal_nodes_name_their_units_too(no_torch):
    found = traces("blitzscale/fig13", ("analytic", "torch"))
    assert named(found, "node 1", "32 units (recorded run)")
    assert named(found, "node 1", "32 units (formula)")


def test_alone_the_formula_needs_no_number():
    names = [trace["name"] for trace in traces("blitzscale/fig13", ("analytic",))]
    assert "chain, small units (formula)" in names
    assert not [name for name in names if re.search(r"\d units", name)]
