"""Agreement of backends: planted faults must show."""

import math

import polars as pl
import pytest

from workbench.catalogue.agreeing import agreements
from workbench.catalogue.spec import Agree

AGREE = Agree("seconds", "times", ("nodes",), "s", {("analytic", "torch"): (-0.01, 0.10)})


def agreement(formula, real, backend="torch"):
    """One record, from seconds by number of nodes of two backends."""
    rows = [("analytic", nodes, value) for nodes, value in formula.items()]
    rows += [(backend, nodes, value) for nodes, value in real.items()]
    table = pl.DataFrame(rows, schema={"backend": pl.String, "nodes": pl.Int64, "s": pl.Float64}, orient="row")
    return agreements((AGREE,), {"times": table})


@pytest.mark.parametrize(
    ("formula", "real", "difference", "agrees"),
    [
        ({2: 1.0, 4: 2.0}, {2: 1.05, 4: 2.0}, 0.05, True),
        ({2: 1.0, 4: 2.0}, {2: 0.95, 4: 2.16}, -0.05, False),  # -5 % lies outside, +8 % inside
        ({2: 1.0, 4: 2.0}, {2: 1.3, 4: 2.16}, 0.3, False),
        ({2: 0.0}, {2: 0.0}, 0.0, True),
        ({2: 0.0}, {2: 1.0}, 1.0, False),
        ({2: math.inf}, {2: math.inf}, 0.0, True),
        ({2: math.nan}, {2: math.nan}, 0.0, True),
        ({2: None}, {2: None}, 0.0, True),
    ],
)
def test_the_difference_that_decides(formula, real, difference, agrees):
    (found,) = agreement(formula, real)
    assert found.difference == pytest.approx(difference)
    assert found.agrees is agrees


@pytest.mark.parametrize(
    ("formula", "real"),
    [
        ({2: 1.0, 4: 2.0}, {2: 1.0, 4: math.nan}),
        ({2: 1.0, 4: 2.0}, {2: 1.0, 4: None}),
        ({2: 1.0, 4: math.inf}, {2: 1.0, 4: 2.0}),
        ({2: 1.0, 4: None}, {2: 1.0, 4: 2.0}),
        ({2: 1.0}, {2: 1.0, 4: 2.0}),  # the real run answers for something the formula does not
    ],
)
def test_a_number_that_only_one_backend_has_is_no_agreement(formula, real):
    (found,) = agreement(formula, real)
    assert math.isnan(found.difference)
    assert not found.agrees


def test_a_real_run_may_answer_for_fewer_rows_and_says_how_many():
    (found,) = agreement({2: 1.0, 4: 2.0, 8: 3.0}, {4: 2.0})
    assert (found.rows, found.of, found.agrees) == (1, 3, True)


def test_a_recorded_run_of_full_mode_may_hold_rows_that_quick_mode_does_not_ask_for():
    (found,) = agreement({2: 1.0}, {2: 1.05, 4: 2.0}, "recorded")
    assert (found.rows, found.of, found.agrees) == (1, 1, True)
    assert found.difference == pytest.approx(0.05)
    (found,) = agreement({2: 1.0, 8: 3.0}, {2: 1.05, 4: 2.0}, "recorded")  # here each lacks a row of the other
    assert math.isnan(found.difference)


def test_a_backend_that_did_not_run_is_not_compared():
    assert agreement({2: 1.0}, {}) == ()
