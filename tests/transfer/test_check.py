"""Each rule of the one-port model, broken once, is named with its place."""

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.transfer.policy import arrivals, binomial_pipeline, chain, check, from_transfers


@pytest.mark.parametrize(
    ("transfers", "message"),
    [
        ([(0, 0, 1, 0), (0, 0, 2, 0)], "row 2: node 0 sends two blocks in step 0"),
        ([(0, 0, 1, 0), (1, 0, 2, 0), (1, 1, 2, 1), (2, 0, 1, 1)], "node 2 receives two blocks in step 1"),
        ([(0, 0, 1, 0), (0, 1, 2, 0)], "node 1 sends block 0 in step 0, which it holds only after step 0"),
        ([(0, 0, 1, 0), (1, 1, 2, 1)], "node 1 sends block 1 in step 1, which it never holds"),
        ([(0, 0, 1, 0), (1, 0, 1, 0)], "node 1 gets block 0 which it holds already"),
        ([(0, 0, 1, 0), (1, 1, 0, 0)], "node 0 gets block 0 which it holds already"),
        ([(0, 0, 1, 0), (1, 1, 2, 0), (2, 1, 1, 0)], "node 1 sends to itself"),
        ([(0, 0, 3, 0)], "row 1, field 'target': target 3 is not one of the 3 nodes"),
        ([(0, 0, 1, 2)], "field 'block': block 2 is not one of the 2 blocks"),
        ([(-1, 0, 1, 0)], "field 'step': step -1 is negative"),
        ([(0, 0, 1, 0), (1, 0, 2, 0), (2, 1, 2, 1)], "which it never holds"),
        ([(0, 0, 1, 0), (1, 0, 1, 1), (2, 1, 2, 0)], "never gives block 1 to node 2"),
    ],
)
def test_broken_rules_are_named(transfers, message):
    with pytest.raises(InputError) as caught:
        check(from_transfers("mine", 3, 2, (0,), transfers))
    assert message in str(caught.value)
    assert str(caught.value).endswith(".")


def test_columns_of_unequal_length_and_unsorted_steps_are_refused():
    schedule = chain(3, 2)
    with pytest.raises(InputError, match="differ in length"):
        check(schedule._replace(block=schedule.block[:-1]))
    with pytest.raises(InputError, match="not sorted by step"):
        check(
            schedule._replace(**{name: getattr(schedule, name)[::-1] for name in ("step", "source", "target", "block")})
        )
    with pytest.raises(InputError, match="no holder"):
        check(schedule._replace(holders=()))


def test_any_single_transfer_that_is_dropped_is_noticed():
    schedule = binomial_pipeline(6, 3)
    for index in range(len(schedule.step)):
        with pytest.raises(InputError):
            check(schedule._replace(**{n: np.delete(getattr(schedule, n), index) for n in schedule._fields[4:]}))


def test_what_nodes_hold_at_first_counts():
    held = np.array([[True, True], [True, False], [False, False]])
    plan = from_transfers("rest", 3, 2, (0,), [(0, 0, 1, 1), (0, 1, 2, 0), (1, 0, 2, 1)])
    assert check(plan, held=held) is plan
    with pytest.raises(InputError, match="node 1 sends block 0 in step 0"):
        check(plan)
    assert arrivals(plan, held).tolist() == [[0, 0], [0, 1], [1, 2]]
    unfinished = from_transfers("rest", 3, 2, (0,), [(0, 0, 1, 1)])
    assert check(unfinished, held=held, absent=(2,)) is unfinished
