"""A user's own schedule: whatever is wrong in it is refused in one sentence, and a right one runs."""

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.transfer.model import Hockney, run_times, schedule_s, uniform_network
from workbench.transfer.policy import arrivals, chain, check, from_columns, from_transfers, replan
from workbench.transfer.simulated import simulate

COST = Hockney(alpha_s=1e-3, bytes_per_s=1e9)
NETWORK = uniform_network(3, 1e9)


def mine(**changed):
    """A chain of three, with something wrong in it."""
    return chain(3, 2)._replace(**changed)


def column(name, place, value):
    values = getattr(chain(3, 2), name).copy()
    values[place] = value
    return {name: values}


WRONG_SCHEDULES = [
    (mine(**column("source", 1, 3)), "row 2, field 'source': source 3 is not one of the 3 nodes"),
    (mine(**column("source", 0, -1)), "row 1, field 'source': source -1 is not one of the 3 nodes"),
    (mine(**column("target", 3, 10**6)), "row 4, field 'target': target 1000000 is not one of the 3 nodes"),
    (mine(**column("target", 3, -5)), "field 'target': target -5"),
    (mine(**column("block", 2, 2)), "row 3, field 'block': block 2 is not one of the 2 blocks"),
    (mine(**column("block", 2, -1)), "field 'block': block -1"),
    (mine(**column("step", 0, -1)), "field 'step': step -1 is negative"),
    (mine(**column("step", 3, 0)), "not sorted by step"),
    (mine(block=np.zeros(9, dtype=np.int32)), "differ in length"),
    (mine(source=np.zeros(3, dtype=np.int32)), "differ in length"),
    (mine(target=np.array([1.0, 1.0, 2.0, 2.0])), "field 'target': is not a column of whole numbers"),
    (mine(target=np.array([[1, 1, 2, 2]])), "field 'target': is not a column of whole numbers"),
    (mine(target=[1, 1, 2, 2]), "field 'target': is not an array"),
    (mine(block=np.array([0, 1, 0, 2**40])), "field 'block': is 1099511627776; give a number of 32 bits"),
    (mine(block=np.array([0, 1, 0, 2**63], dtype=np.uint64)), "give a number of 32 bits"),
    (mine(holders=(3,)), "field 'holders': is 3; give a whole number from 0 to 2"),
    (mine(holders=(-1,)), "field 'holders': is -1"),
    (mine(holders=("0",)), "field 'holders': is '0'"),
    (mine(nodes=2), "target 2 is not one of the 2 nodes"),
    (mine(nodes=2.0), "field 'nodes': is 2.0"),
    (mine(blocks=1), "block 1 is not one of the 1 blocks"),
    (mine(blocks=0), "field 'blocks': is 0"),
    (mine(blocks=10**9), "more than the 50,000,000"),
]


@pytest.mark.parametrize(
    ("schedule", "problem"), WRONG_SCHEDULES, ids=lambda value: value if isinstance(value, str) else ""
)
@pytest.mark.parametrize(
    "use",
    [
        lambda schedule: run_times(schedule, 1.0),
        lambda schedule: run_times(schedule, 1.0, "barrier"),
        lambda schedule: schedule_s(schedule, 1e6, COST),
        lambda schedule: simulate(schedule, NETWORK, 1e6),
        lambda schedule: simulate(schedule, NETWORK, 1e6, run="barrier"),
        lambda schedule: NETWORK.transfer_seconds(schedule, 1e6),
        lambda schedule: NETWORK.ports(schedule),
        lambda schedule: arrivals(schedule),
        lambda schedule: check(schedule),
        lambda schedule: replan(schedule, (1,), np.ones((3, 2), dtype=bool)),
    ],
    ids=["dataflow", "barrier", "seconds", "simulate", "in steps", "transfers", "ports", "arrivals", "check", "replan"],
)
def test_a_schedule_that_names_what_does_not_exist_is_refused(use, schedule, problem):
    """The kernels go by the columns' numbers unchecked: a wrong one would read and write beside their arrays."""
    with pytest.raises(InputError) as caught:
        use(schedule)
    assert problem in str(caught.value)
    assert str(caught.value).endswith(".")


def test_a_users_own_schedule_still_runs():
    transfers = [(0, 0, 1, 0), (1, 0, 1, 1), (1, 1, 2, 0), (2, 1, 2, 1)]
    made = from_transfers("mine", 3, 2, (0,), transfers)
    names = made._fields[4:]
    by_hand = mine(**dict(zip(names, np.array(transfers, dtype=np.int64).T, strict=True)))
    for schedule in (made, by_hand):
        assert run_times(schedule, 1.0).complete_s.tolist() == [0.0, 2.0, 3.0]
        assert simulate(schedule, NETWORK, 1e9).completion["complete_s"].to_list() == pytest.approx([0.0, 2.0, 3.0])
    unsigned = by_hand._replace(**{name: getattr(by_hand, name).astype(np.uint64) for name in names})
    assert run_times(unsigned, 1.0).complete_s.tolist() == [0.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "transfers",
    [
        [(0, 0, 1)],
        [(0, 0, 1, 0, 5)],
        [(0, 0, 1, 0), (1, 1)],
        [0, 0, 1, 0],
        [(0, 0, 1, 0.5)],
        [("a", 0, 1, 0)],
        [(0, 0, 1, 2**40)],
        [(0, 0, 1, 10**40)],
        [(0, None, 1, 0)],
    ],
)
def test_transfers_that_are_no_rows(transfers):
    with pytest.raises(InputError):
        from_transfers("mine", 3, 2, (0,), transfers)


def test_columns_of_unequal_length_make_no_schedule():
    with pytest.raises(InputError, match="differ in length"):
        from_columns("mine", 3, 2, (0,), [0, 1], [0], [1], [0])
