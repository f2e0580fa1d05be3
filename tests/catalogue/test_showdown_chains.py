"""Pipelines inside chains: when they begin, what their hops cost, and above which link they are not worth it."""

import polars as pl
import pytest
from quick_runs import alone, tables_of

from workbench.catalogue import running, spec
from workbench.catalogue.showdown.pipelines_in_chains import EVEN, GBIT, LOADED, LOADING
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
    ours, theirs = (tables_of(CHAINS, backend)["done"].sort("way", "jobs") for backend in ("analytic", "simpy"))
    assert ours.height == 2 * 100
    assert ours["seconds"].to_list() == pytest.approx(theirs["seconds"].to_list(), rel=1e-12)


@pytest.mark.parametrize(
    "given",
    [
        {"tokens_out": 1, "jobs": 400, "sources": 8, "added": 16, "servers": 3},
        {"sources": 1, "added": 2, "servers": 8},
        {"sources": 3, "added": 7},
        {"sources": 8, "added": 1},
        {"round_trip_s": 1e-4, "servers": 6, "jobs": 300},
    ],
    ids=str,
)
def test_so_they_do_with_other_settings(given):
    """The first two are where slots that change hands one by one would miss by 6 % and 20 %."""
    for way in (LOADED, LOADING):
        ours, theirs = (served(backend, way, **given)["mean_s"].to_numpy() for backend in ("analytic", "simpy"))
        assert ours == pytest.approx(theirs, rel=1e-12)
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


def test_both_backends_agree_and_are_drawn():
    outcome = running.run(spec.find(CHAINS), {}, backends=("analytic", "simpy"))
    assert [one.agrees for one in outcome.agreement] == [True, True]
    assert draw(outcome).to_dict()["data"]
    assert draw(alone(CHAINS, "analytic")).to_dict()["data"]
