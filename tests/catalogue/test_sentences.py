"""What a result says in a sentence tells of all its runs, not of each in turn."""

import polars as pl
import pytest

from workbench.catalogue import running, spec
from workbench.figures import sketch

QUICK_S = 1.0
"""Entries whose full run takes longer are left to the tests of their papers."""
CHEAP = [
    one.id
    for one in spec.all_specs().values()
    if one.stochastic and "compiled" in one.backends and one.seconds.get("compiled", 2 * QUICK_S) <= QUICK_S
]


def cheap(id, runs):
    backends = [name for name in spec.find(id).backends if name in ("analytic", "compiled")]
    return running.run(spec.find(id), {}, backends=backends, quick=True, replications=runs)


@pytest.mark.parametrize("id", CHEAP)
def test_a_sentence_does_not_grow_with_the_number_of_runs(id):
    """Three runs listed one after the other would say everything three times."""
    one, three = (cheap(id, runs).sentence for runs in (1, 3))
    assert len(three) < 1.3 * len(one), three


def test_a_pool_of_several_runs_is_said_and_drawn_as_one():
    found = cheap("theory/pool-size", 5)
    table, shares = (found.tables[name].filter(backend="compiled") for name in ("needed", "shares"))
    active = table.filter(share=0.99)["active"]
    assert active.min() < active.max()
    assert f"{active.min()} to {active.max()} at once on a Poisson path" in found.sentence

    ends = shares.group_by("replication").agg(pl.col("active").max())["active"]
    assert ends.min() < ends.max()  # a run that never had so many active counts as one with no more
    (curve,) = (one for one in sketch(found)["data"] if one["name"] == "active on a Poisson path")
    said = dict(zip(curve["x"], curve["y"], strict=True))
    for number in (0, 40, ends.min() + 1, ends.max()):
        part = shares.filter(pl.col("active") <= number).group_by("replication").agg(pl.col("time_share").sum())
        assert said[number] == pytest.approx(100 * part["time_share"].sum() / 5)
    assert curve["y"] == sorted(curve["y"])
