"""Schedules made by hand, of anything: they run like the plain ones that they equal, or are refused in a sentence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError, WorkbenchError
from workbench.transfer.kernels.slow import dataflow_slow
from workbench.transfer.model import run_times, schedule_s, uniform_network
from workbench.transfer.model.cost import Hockney
from workbench.transfer.policy import Schedule, arrivals, chain, check, from_transfers, replan
from workbench.transfer.simulated import simulate

NETWORK = uniform_network(3, 1e9)
COST = Hockney(alpha_s=0.0, bytes_per_s=1e9)
USES = {
    "dataflow": lambda schedule: run_times(schedule, 1.0),
    "barrier": lambda schedule: run_times(schedule, 1.0, "barrier"),
    "seconds": lambda schedule: schedule_s(schedule, 1e6, COST),
    "simulate": lambda schedule: simulate(schedule, NETWORK, 1e6),
    "in steps": lambda schedule: simulate(schedule, NETWORK, 1e6, run="barrier"),
    "transfers": lambda schedule: NETWORK.transfer_seconds(schedule, 1e6),
    "arrivals": arrivals,
    "check": check,
    "replan": lambda schedule: replan(schedule, (2,), np.ones((3, 2), dtype=bool)),
}

dtypes = st.sampled_from(["i1", "u1", "i4", "u8", "f4", "f8", "c8", "?", "U3", "O", "M8[s]"])
anything = st.sampled_from([None, 0, -1, 2.5, "", "ab", (), [], {}, np.nan, 10**40, np.array(3), (0, "a"), ([],)])


@st.composite
def columns(draw):
    """Whole numbers around those that a schedule of three nodes and two blocks may hold, in some dtype and layout."""
    dtype = draw(dtypes)
    numbers = draw(st.lists(st.integers(0 if dtype.startswith("u") else -1, 3), max_size=6))
    values = np.array(numbers, dtype=object).astype(dtype)
    every = draw(st.sampled_from([1, 2, -1]))
    return values[::every]


@st.composite
def schedules(draw):
    good = chain(3, 2)
    fields = draw(st.sets(st.sampled_from(good._fields), max_size=4))
    changed = {}
    for field in fields:
        kinds = [anything, columns()] if field in ("step", "source", "target", "block", "holders") else [anything]
        changed[field] = draw(st.one_of(kinds))
    return good._replace(**changed)


@given(schedules(), st.sampled_from(sorted(USES)))
def test_anything_runs_or_is_one_sentence(schedule, use):
    try:
        USES[use](schedule)
    except WorkbenchError as error:
        text = str(error)
        assert text.endswith("."), text
        assert "\n" not in text
        assert len(text) < 300


transfers = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2), st.integers(0, 1)), max_size=12)


@given(transfers)
def test_a_schedule_that_breaks_the_rules_still_runs_within_its_arrays(rows):
    """Whether a schedule keeps the rules is `check`'s business: here a block that is never held is sent never."""
    schedule = from_transfers("mine", 3, 2, (0,), rows)
    times = run_times(schedule, 1.0)
    in_order = list(zip(schedule.source.tolist(), schedule.target.tolist(), schedule.block.tolist(), strict=True))
    held = {(node, block): 0.0 if node == 0 else np.inf for node in range(3) for block in range(2)}
    assert times.end_s.tolist() == dataflow_slow(in_order, held, [1.0] * len(rows), [1.0] * len(rows))
    assert {(node, block): times.held_s[node, block] for node, block in held} == held


@pytest.mark.parametrize("layout", ["reversed twice", "every second", "a field of records", "Fortran", "read only"])
def test_the_layout_of_the_columns_does_not_matter(layout):
    good = chain(3, 2)
    names = good._fields[4:]
    rows = np.column_stack([getattr(good, name) for name in names])
    if layout == "reversed twice":
        made = {name: np.ascontiguousarray(getattr(good, name)[::-1])[::-1] for name in names}
    elif layout == "every second":
        made = {name: np.repeat(getattr(good, name), 2)[::2] for name in names}
    elif layout == "a field of records":
        table = np.zeros(len(rows), dtype=[(name, "<i8") for name in names])
        for name in names:
            table[name] = getattr(good, name)
        made = {name: table[name] for name in names}
    elif layout == "Fortran":
        made = dict(zip(names, np.asarray(rows, order="C").T, strict=True))
    else:
        made = {name: getattr(good, name).copy() for name in names}
        for column in made.values():
            column.flags.writeable = False
    schedule = good._replace(**made)
    for run in ("dataflow", "barrier"):
        assert run_times(schedule, 1.0, run).complete_s.tolist() == [0.0, 2.0, 3.0]
    assert simulate(schedule, NETWORK, 1e9).completion["complete_s"].to_list() == pytest.approx([0.0, 2.0, 3.0])


def test_no_transfers_at_all():
    empty = from_transfers("mine", 3, 2, (0,), [])
    for run in ("dataflow", "barrier"):
        times = run_times(empty, 1.0, run)
        assert times.start_s.tolist() == times.end_s.tolist() == []
        assert times.complete_s.tolist() == [0.0, np.inf, np.inf]
    assert simulate(empty, NETWORK, 1e6).completion["complete_s"].is_nan().to_list() == [False, True, True]
    with pytest.raises(InputError, match="never gives block 0 to node 1"):
        check(empty)


def test_a_node_that_sends_to_itself_is_refused_by_check_and_harmless_elsewhere():
    loop = Schedule("mine", 2, 1, (0,), *(np.array([place]) for place in (0, 0, 0, 0)))
    assert run_times(loop, 1.0).complete_s.tolist() == [0.0, np.inf]
    with pytest.raises(InputError, match="node 0 sends to itself"):
        check(loop)
