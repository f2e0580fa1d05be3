"""Predicted peaks: the policy against growth written out, the kept maxima against the policy."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from workbench.blending.kernels import flights
from workbench.blending.policy import predicted_peak
from workbench.jit import kernel

ROWS = st.lists(st.tuples(st.integers(-5, 20), st.integers(0, 30)), max_size=12)


def table(rows):
    return np.array(sorted(rows, reverse=True), np.int64).reshape(-1, 2)


def grown(rows, now):
    """The most they hold together: each has `step - since` until its finish; who is late keeps what it has."""
    late = sum(now - since for finish, since in rows if finish <= now)
    going = [(finish, since) for finish, since in rows if finish > now]
    last = max((finish for finish, _ in going), default=now)
    sums = [sum(step - since for finish, since in going if finish >= step) for step in range(now + 1, last + 1)]
    return late + max([0, *sums])


@given(ROWS, st.integers(-1, 22), st.integers(0, 30))
def test_the_peak_is_the_largest_sum_over_the_steps_to_come(rows, finish, held):
    rows = [(end, -own) for end, own in rows]
    now = 0
    given_rows = rows + ([(finish, -held)] if finish >= 0 else [])
    assert predicted_peak(table(rows), len(rows), now, finish, -held) == grown(given_rows, now)


@kernel
def play(moves, peaks):
    """Insert and remove rows step by step; fill the kept peak without and with one more row after each move."""
    rows, count = np.zeros((moves.shape[0], flights.ROW_COLUMNS), np.int64), np.zeros(3, np.int64)
    for index in range(moves.shape[0]):
        step = moves[index, 0]
        flights.expire(rows, count, step)
        if moves[index, 1] == 1:
            flights.insert_row(rows, count, step, moves[index, 2], moves[index, 3])
        else:
            flights.remove_row(rows, count, moves[index, 2], moves[index, 3])
        peaks[index, 0] = flights.peak(rows, count, step)
        peaks[index, 1] = flights.peak_with(rows, count, step, step + moves[index, 4], step - moves[index, 5])


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 7), min_size=1, max_size=40))
def test_kept_maxima_are_those_of_the_policy(draws):
    alive, moves, expected, step = [], [], [], 0
    for ahead, remove, which, finish, held, length, more in draws:
        step += ahead % 3
        if remove < 4 and alive:
            row = alive.pop(which % len(alive))
            moves.append((step, 0, *row, length, more))
        else:
            row = (step + finish - 2, step - held)  # some are late already when they come
            alive.append(row)
            moves.append((step, 1, *row, length, more))
        rows = table(alive)
        expected.append(
            (
                predicted_peak(rows, len(alive), step - 1, -1, 0),
                predicted_peak(rows, len(alive), step - 1, step + length, step - more),
            )
        )
    peaks = np.empty((len(moves), 2), np.int64)
    play(np.array(moves, np.int64), peaks)
    assert peaks.tolist() == [list(pair) for pair in expected]
