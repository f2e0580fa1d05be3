"""Named tuples by reference: a kernel sees what Python sees, and what it fills is there afterwards."""

from typing import NamedTuple

import numba
import numpy as np
import pytest

from workbench.jit import inner_kernel, lean_kernel
from workbench.references import by_reference


@by_reference
class Inside(NamedTuple):
    line: np.ndarray
    cube: np.ndarray


@by_reference
class Outside(NamedTuple):
    table: np.ndarray
    count: int
    inside: Inside | None
    empty: np.ndarray
    last: np.ndarray


@inner_kernel
def inner_total(inside):
    """What of the inner tuple is filled and read; nothing where there is none."""
    if inside is None:
        return 0.0
    inside.line[-1] = 7.0
    row = inside.cube[1]
    row[2, 1] = inside.line.shape[0]
    return inside.cube.sum() + inside.line[0]


@lean_kernel
def total(outside, scale):
    outside.table[1, 0] = outside.count
    for row in range(outside.table.shape[0]):
        one = outside.table[row]
        outside.last[row] = one[0] * scale + one[1]
    return inner_total(outside.inside) + outside.empty.size + outside.table.ndim


def given(inside=True) -> Outside:
    """Arrays with a value of their own in each place; the last one begins within another array."""
    within = Inside(np.arange(1.0, 6.0), np.arange(24.0).reshape(2, 4, 3)) if inside else None
    table = np.arange(6, dtype=np.int32).reshape(3, 2)
    return Outside(table, -5, within, np.empty((0, 4)), np.zeros(9)[4:7])


@pytest.mark.parametrize("inside", [True, False])
def test_a_kernel_reads_and_fills_the_arrays_of_a_tuple(inside):
    """By hand: 0 to 23 add up to 276, the place of 12 + 2 * 3 + 1 = 19 becomes 5, the line begins with 1."""
    seen = given(inside)
    assert total(seen, 10) == 2 + (276 - 19 + 5 + 1 if inside else 0)
    np.testing.assert_array_equal(seen.table, [[0, 1], [-5, 3], [4, 5]])
    np.testing.assert_array_equal(seen.last, [1, -47, 45])
    if inside:
        assert seen.inside.line[-1] == 7
        assert seen.inside.cube[1, 2, 1] == 5


def test_what_is_no_kernel_reads_no_array_of_a_tuple():
    """Its whole numbers it reads."""
    assert numba.njit(lambda outside: outside.count)(given()) == -5
    with pytest.raises(
        numba.core.errors.UnsupportedError, match=r"Outside\.last can be read in kernels of workbench\.jit only"
    ):
        numba.njit(lambda outside: outside.last[0])(given())


def test_other_fields_are_refused():
    with pytest.raises(TypeError, match=r"Outside\.table is no contiguous array"):
        total(given()._replace(table=np.zeros((4, 6), np.int32)[:, ::2]), 1)
    with pytest.raises(TypeError, match=r"Outside\.count is no contiguous array, whole number or None: float64"):
        total(given()._replace(count=0.5), 1)
