"""Whether a schedule, ours or a user's own, obeys the rules of the one-port model and delivers everything."""

import numpy as np

from workbench.errors import InputError
from workbench.records import shown, whole
from workbench.transfer.policy.schedule import COLUMNS, Schedule, check_cells, check_lengths, column_of

NEVER = np.iinfo(np.int64).max


def check(schedule: Schedule, held: np.ndarray | None = None, absent: tuple[int, ...] = ()) -> Schedule:
    """Return the schedule unchanged if it is valid, else say in one sentence what is wrong and where.

    A valid schedule names existing nodes and blocks, lets a node send and receive at most one block a step, sends only
    what the sender held before the step, never delivers a block twice, and leaves every node with every block
    (the one-port full-duplex model of Bar-Noy and Kipnis 1994).

    Parameters:
        schedule: the schedule; rows in messages count its transfers from 1.
        held: bool (nodes, blocks), what nodes hold before step 0 where that is more than the holders' complete copies.
        absent: nodes that take no part (dead ones); they need not end up complete.

    Raises:
        `InputError` for the first rule that is broken.
    """
    check_columns(schedule)
    held = None if held is None else held_of(schedule, held)
    if not schedule.holders and held is None:
        raise InputError(f"schedule {schedule.name!r} has no holder", "name the nodes that hold all blocks at first")
    if (row := _first(schedule.source == schedule.target)) is not None:
        raise _error(row, f"node {schedule.source[row]} sends to itself", "drop the transfer")
    gone = [whole(node, "absent", 0, schedule.nodes - 1) for node in absent]
    step, source, target, block = (column.astype(np.int64) for column in schedule[4:])
    busy = step * schedule.nodes
    for verb, node in (("sends", source), ("receives", target)):
        if (row := _second_of_a_pair(busy + node)) is not None:
            raise _error(row, f"node {node[row]} {verb} two blocks in step {step[row]}", f"move one {verb[:-1]} away")
    present = _arrivals(schedule, held)
    if (row := _first(present[source, block] > step)) is not None:
        name = f"node {source[row]} sends block {block[row]} in step {step[row]}"
        when = present[source[row], block[row]]
        reason = "which it never holds" if when == NEVER else f"which it holds only after step {when - 1}"
        raise _error(row, f"{name}, {reason}", "send it later or deliver it earlier")
    given = present == 0
    again = given[target, block]
    if (row := _first(again)) is None:
        row = _second_of_a_pair(target * schedule.blocks + block)
    if row is not None:
        raise _error(row, f"node {target[row]} gets block {block[row]} which it holds already", "drop the transfer")
    missing = present == NEVER
    missing[gone] = False
    if missing.any():
        node, lost = np.argwhere(missing)[0]
        raise InputError(f"schedule {schedule.name!r} never gives block {lost} to node {node}", "add the transfer")
    return schedule


def arrivals(schedule: Schedule, held: np.ndarray | None = None) -> np.ndarray:
    """Number of steps after which each node holds each block, int64 (nodes, blocks); 0 for what it held at first.

    Blocks that never arrive read `NEVER`; of several deliveries the first counts.

    Raises:
        `InputError` for a schedule that names what does not exist, or a `held` of another shape.
    """
    check_columns(schedule)
    return _arrivals(schedule, None if held is None else held_of(schedule, held))


def _arrivals(schedule: Schedule, held: np.ndarray | None) -> np.ndarray:
    present = np.full((schedule.nodes, schedule.blocks), NEVER)
    backwards = slice(None, None, -1)
    present[schedule.target[backwards], schedule.block[backwards]] = schedule.step[backwards].astype(np.int64) + 1
    present[list(schedule.holders)] = 0
    if held is not None:
        present[held] = 0
    return present


def check_columns(schedule: Schedule) -> list[np.ndarray]:
    """Refuse a schedule whose columns do not fit together, name nodes or blocks that do not exist, or are not sorted.

    Whatever walks a schedule by index (the kernels do so unchecked) may rely on this; that the schedule also works,
    `check` says.

    Returns:
        the columns step, source, target and block as int32.

    Raises:
        `InputError` with row and column.
    """
    nodes, blocks = check_cells(schedule.nodes, schedule.blocks)
    columns = [column_of(*named) for named in zip(COLUMNS, schedule[4:], strict=True)]
    check_lengths(columns)
    for name, column in zip(COLUMNS, schedule[4:], strict=True):
        if not isinstance(column, np.ndarray):
            raise InputError("is not an array", "make the schedule with from_transfers or from_columns", field=name)
    if not isinstance(schedule.holders, tuple | list):
        raise InputError(
            f"is {shown(schedule.holders)}", "list the nodes that hold all blocks at first", field="holders"
        )
    for holder in schedule.holders:
        whole(holder, "holders", 0, nodes - 1)
    step, source, target, block = columns
    limits = (
        ("step", step, None, "is negative"),
        ("source", source, nodes, f"is not one of the {nodes} nodes"),
        ("target", target, nodes, f"is not one of the {nodes} nodes"),
        ("block", block, blocks, f"is not one of the {blocks} blocks"),
    )
    for name, column, end, problem in limits:
        wrong = column < 0 if end is None else (column < 0) | (column >= end)
        if (row := _first(wrong)) is not None:
            raise _error(row, f"{name} {column[row]} {problem}", "correct the number", field=name)
    if (row := _first(np.diff(step) < 0)) is not None:
        raise _error(row + 1, "the transfers are not sorted by step", "sort them or use from_transfers")
    return columns


def held_of(schedule: Schedule, held: np.ndarray) -> np.ndarray:
    """What nodes hold at first as bool (nodes, blocks), or an `InputError` for another shape."""
    shape = (schedule.nodes, schedule.blocks)
    try:
        given = np.array(held, dtype=bool)
    except (TypeError, ValueError):
        given = np.array(False)
    if given.shape != shape:
        remedy = f"give one row a node and one column a block, {shape[0]} x {shape[1]}"
        raise InputError(f"has the shape {given.shape}", remedy, field="held")
    return given


def _first(wrong: np.ndarray) -> int | None:
    return int(np.argmax(wrong)) if wrong.any() else None


def _second_of_a_pair(keys: np.ndarray) -> int | None:
    order = np.argsort(keys, kind="stable")
    equal = np.flatnonzero(np.diff(keys[order]) == 0)
    return int(order[equal + 1].min()) if len(equal) else None


def _error(row: int, problem: str, remedy: str, field: str | None = None) -> InputError:
    return InputError(problem, remedy, row=row + 1, field=field)
