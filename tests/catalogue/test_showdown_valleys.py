"""An offline job beside online requests: what fits is what is left, and online requests pay less when they go first."""

import polars as pl
import pytest
from quick_runs import alone, tables_of

from workbench.catalogue.showdown.valleys import ALONE, BEST, EQUAL, LAST, NONE, ORDERS, SHARES
from workbench.figures import draw

VALLEYS = "showdown/valleys"


@pytest.fixture(scope="module")
def served():
    return alone(VALLEYS, "compiled")


def test_an_instance_that_is_never_idle_serves_as_many_whosesoever_they_are(served):
    table = served.tables["served"].filter(pl.col("way") != ALONE)
    assert len(table) == 2 * len(SHARES)
    both = table["both_per_s"]
    assert both.max() / both.min() < 1.05
    assert (table["online_per_s"] + table["job_per_s"]).to_list() == pytest.approx(both.to_list())
    jobs = table.filter(pl.col("way") == LAST).sort("share")["job_per_s"]
    assert jobs.is_sorted(descending=True)


@pytest.mark.parametrize(("prompt", "output"), [(2000, 100), (64, 2), (8192, 2)], ids=["usual", "short", "chunks"])
def test_a_full_instance_bears_what_the_formula_says(prompt, output):
    """In the mean step as many requests begin as end; the simulation knows of memory, slots and chunks, not of this."""
    given = {"prompt_tokens": prompt, "output_tokens": output, "job": 10}
    want = tables_of(VALLEYS, "analytic", **given)["served"].filter(pl.col("way") == LAST)["both_per_s"][0]
    found = tables_of(VALLEYS, "compiled", **given)["served"].filter(pl.col("way") != ALONE)["both_per_s"]
    assert found.to_list() == pytest.approx([want] * len(found), rel=0.03)  # the job lasts at every load


def test_online_requests_pay_less_where_they_go_first(served):
    table = served.tables["served"]
    kept = {way: table.filter(pl.col("way") == way).sort("share")["kept"].to_list() for way in (ALONE, LAST, EQUAL)}
    for without, behind, equal in zip(*kept.values(), strict=True):
        assert without >= behind >= equal
    assert max(kept[EQUAL]) < 0.1  # the whole job stands before them
    assert kept[LAST][0] > 0.9  # next to no load: what runs is all that an online request may wait for


def test_orders_differ_little_where_nothing_overlaps(served):
    """A list of the same requests: the same work in any order, but for how it begins and ends."""
    ends = served.tables["orders"]
    assert set(ends["order"]) == set(ORDERS)
    assert ends["seconds"].max() < 1.15 * ends["seconds"].min()


def test_what_is_left_by_hand():
    tables = tables_of(VALLEYS, "analytic", busy=0.75)
    for row in tables["served"].filter(pl.col("way") == LAST).to_dicts():
        assert row["job_per_s"] == pytest.approx(row["both_per_s"] - row["online_per_s"])
        assert row["online_per_s"] == pytest.approx(row["share"] * row["both_per_s"])
    ends = dict(tables["orders"].select("order", "seconds").rows())
    half = dict(tables_of(VALLEYS, "analytic", busy=0.5)["orders"].select("order", "seconds").rows())
    assert ends[NONE] == pytest.approx(2 * half[NONE])  # a quarter is left instead of a half
    assert 1 < ends[NONE] / ends[BEST] <= 1.4  # no density gains more with slopes of 1/2 and 1/3


def test_a_job_by_itself_takes_about_its_seconds_without_overlap():
    """Next to no online requests: within a fifth of the sum of all steps' seconds."""
    given = {"busy": 0.05, "job": 100}
    want = dict(tables_of(VALLEYS, "analytic", **given)["orders"].select("order", "seconds").rows())[NONE]
    for seconds in tables_of(VALLEYS, "compiled", **given)["orders"]["seconds"]:
        assert seconds == pytest.approx(want, rel=0.2)


def test_it_is_drawn_by_formula_alone_and_with_a_run(served):
    assert draw(served).to_dict()["data"]
    assert draw(alone(VALLEYS, "analytic")).to_dict()["data"]
