"""Tables of verdicts and agreements: the same column types whatever they hold."""

import polars as pl
import pytest

from workbench.results import Agreement, Verdict, agreement_table, read_against, verdict_table


def verdict(ours):
    """A verdict about a number or an ordering."""
    return Verdict(claim="a", published="1 s", ours=ours, strength="band", verdict="reproduced", reason="it is")


NUMBER, ORDERING = verdict(1.23456789), verdict("1, 2 s")


@pytest.mark.parametrize("verdicts", [(), (NUMBER,), (ORDERING,), (NUMBER, ORDERING), (ORDERING, NUMBER)])
def test_the_types_of_a_verdict_table_do_not_depend_on_its_rows(verdicts):
    table = verdict_table(verdicts)
    assert table.schema == verdict_table((NUMBER, ORDERING)).schema
    assert table.schema["ours"] == pl.Float64
    assert table.schema["interval"] == pl.List(pl.Float64)
    assert table.filter(pl.col("ours") > 1)["ours"].to_list() == [1.23456789] * (NUMBER in verdicts)


def test_an_ordering_has_a_text_and_no_number():
    assert verdict_table((NUMBER, ORDERING)).select("ours", "ours_text").rows() == [
        (1.23456789, "1.23457"),
        (None, "1, 2 s"),
    ]


def test_the_types_of_an_agreement_table():
    item = Agreement(
        quantity="s", backends=("analytic", "simpy"), rows=1, of=2, difference=0.2, allowed=(0, 0.1), independent=True
    )
    table = agreement_table((item,))
    assert table.schema == agreement_table(()).schema
    assert table["agrees"].to_list() == [False]
    assert table["backends"].to_list() == [["analytic", "simpy"]]


@pytest.mark.parametrize(
    ("ours", "interval", "reading"),
    [
        (1.0, None, "reproduced"),
        (1.1, None, "reproduced"),
        (1.2, None, "differs"),
        (1.0, (0.95, 1.05), "reproduced"),
        (1.0, (0.8, 1.05), "undecided"),
        (1.3, (1.2, 1.4), "differs"),
        (float("nan"), None, "not possible"),
    ],
)
def test_read_against(ours, interval, reading):
    assert read_against(ours, interval, 0.9, 1.1) == reading
