"""Pipelines inside chains: when they begin, what their hops cost, and above which link they are not worth it."""

from itertools import pairwise, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick_runs import alone, tables_of

from workbench.catalogue import running, spec
from workbench.catalogue.showdown.pipelines_in_chains import EVEN, GBIT, LOADED, LOADING, fewest_hops
from workbench.figures import draw

CHAINS = "showdown/pipelines-in-chains"
BLOCK_BYTES = 1.32e9


def served(backend, way, **given):
    return tables_of(CHAINS, backend, **given)["served"].filter(pl.col("way") == way)


def test_by_hand():
    """14 blocks from two chains to sub-groups of three: ⌈14/2⌉ + ⌈log2 3⌉ - 1 steps, and 13 + ⌈log2 3⌉ for all."""
    table = tables_of(CHAINS, "analytic")["chains"]
    loading, loaded = (table.filter(pl.col("serves") == way) for way in (LOADING, LOADED))
    assert loading["steps"].min() == 7 + 2 - 1
    assert set(loaded["steps"]) == {13 + 2}
    assert set(loading["hops"]) == {2 * 5}
    assert set(loaded["hops"]) == {5}
    message_s = 20 * (0.02 + 0.018)
    assert loaded["service_s"][0] == pytest.approx(5 * message_s + 70 * 0.10892, rel=0.01)  # golden: 108.92 ms a block
    assert loading["service_s"][0] - loaded["service_s"][0] == pytest.approx(5 * message_s)
    first = served("analytic", LOADING, nic_bytes_per_s=GBIT)["first_s"].max()
    assert first == pytest.approx(8 * BLOCK_BYTES / GBIT)


def test_formula_and_simulation_answer_every_job_at_the_same_instant():
    """Two halves of equal length, each held by one server when pipelines form: all slots change over together."""
    tables = [tables_of(CHAINS, backend, added=2) for backend in ("analytic", "simpy")]
    ours, theirs = (table["done"].sort("way", "jobs") for table in tables)
    assert ours.height == 2 * 100
    assert ours["seconds"].to_list() == pytest.approx(theirs["seconds"].to_list(), rel=1e-9)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"sources": 1},
        {"sources": 3, "added": 7},
        {"servers": 6, "jobs": 300},
        {"sources": 8, "added": 16, "jobs": 400, "servers": 4},
        {"sources": 8, "added": 1},
        {"round_trip_s": 1e-4},
    ],
    ids=str,
)
def test_other_settings_are_near(given):
    """Chains that wait are exact whatever the sizes; no pipeline begins behind them."""
    for way, allowed in ((LOADED, 1e-9), (LOADING, 0.05)):
        ours, theirs = (served(backend, way, **given)["mean_s"].to_numpy() for backend in ("analytic", "simpy"))
        assert ours == pytest.approx(theirs, rel=allowed)
    begins = [served("simpy", way, **given)["first_s"].to_numpy() for way in (LOADING, LOADED)]
    assert (begins[0] <= begins[1]).all()


def test_the_link_at_which_waiting_is_worth_as_much():
    """As few jobs as the first pipeline holds: on a slower link pipelines answer sooner, on a faster one later."""
    few = {"jobs": 13, "sources": 1, "added": 2}
    head = tables_of(CHAINS, "analytic", **few)["headline"]
    even = head.filter(pl.col("series") == EVEN)["value"][0] * GBIT

    def means(rate):
        return [
            served("simpy", way, **few, nic_bytes_per_s=rate).filter(pl.col("gbit_per_s") == rate / GBIT)["mean_s"][0]
            for way in (LOADING, LOADED)
        ]

    same, slower, faster = means(even), means(0.9 * even), means(1.1 * even)
    assert same[0] == pytest.approx(same[1])
    assert slower[0] < slower[1]
    assert faster[0] > faster[1]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=3))
def test_no_choice_of_servers_has_fewer_hops(ready):
    ready = np.array(ready)
    forms, runs = fewest_hops(ready, range(len(ready)))
    held = ready <= forms
    assert held.any(axis=0).all()
    assert not (ready < forms).any(axis=0).all()
    assert all(held[node, block] for block, node in enumerate(runs))
    choices = product(*(np.flatnonzero(column) for column in held.T))
    assert sum(a != b for a, b in pairwise(runs)) == min(sum(a != b for a, b in pairwise(one)) for one in choices)


def test_both_backends_agree_and_are_drawn():
    outcome = running.run(spec.find(CHAINS), {}, backends=("analytic", "simpy"))
    assert [one.agrees for one in outcome.agreement] == [True, True]
    assert draw(outcome).to_dict()["data"]
    assert draw(alone(CHAINS, "analytic")).to_dict()["data"]
