"""Kernels read and fill arrays as Python does: every function here runs as it stands, too."""

import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from workbench.jit import inner_kernel, kernel, lean_kernel
from workbench.references import by_reference


@by_reference
class Given(NamedTuple):
    cube: np.ndarray
    line: np.ndarray
    flags: np.ndarray
    small: np.ndarray


def given() -> Given:
    cube = np.arange(60.0).reshape(3, 4, 5)
    return Given(cube, np.arange(7, dtype=np.int64), np.array([True, False, True]), np.arange(6, dtype=np.int8))


def fills(given, i, j, k):
    """Elements by one to three indices, also from the end; rows of rows; numbers of other types, and truths."""
    cube, line = given.cube, given.line
    cube[i, j, k] += 100.0
    plane = cube[i]
    row = plane[j]
    row[k] *= 2.0
    row[-1] = line[k]
    cube[1, -1][2] = line[-2] + row.shape[0] * plane.shape[1] + cube.shape[0]
    plane[j, 0] = given.flags[0]
    given.flags[i] = not given.flags[i]
    line[np.uint64(3)] = 2.75
    line[given.small[2]] = given.small[-1]
    given.small[j] = line[j]
    for value in row:
        line[0] += np.int64(value)


def chooses(given, i, j, k):
    """Variables that are set on one way only, or before a loop and in it."""
    total, row = 0.0, given.cube[i, j]
    if i > 0:
        last = row[k]
        plane = given.cube[i]
    for place in range(5):
        if i > 0:
            total += 10.0 * last + plane[j, place]
        if place % 2 == 0:
            row = given.cube[place % 3, j]
        other = row[place]
        total += other
    given.line[1] = np.int64(total)


def slices(given, i, j, k):
    """What is no single element, and columns, which are not contiguous."""
    column = given.cube[:, j, k]
    column[i] = 7.0
    given.line[2:5] = given.line[1]
    given.line[0] = np.int64(column[-1] + given.cube[i, :, k].sum() + given.cube[i, j, 1:].sum())


def below(given, i, j, k):
    """An inner kernel is given rows."""
    given.cube[i, j, k] = _total(given.cube[i], given.line) + _total(given.cube[-1], given.line)


@inner_kernel
def _total(plane, line):
    plane[0, -1] += line[line.size - 1]
    return plane.size + plane[1].sum() + plane[-1][-1] + len(plane)


@pytest.fixture(scope="module", params=[lean_kernel, kernel], ids=["lean", "counted"])
def compiled(request):
    return {function: request.param(function) for function in (fills, chooses, slices)}


@pytest.mark.parametrize("function", [fills, chooses, slices])
@pytest.mark.parametrize("place", [(0, 0, 0), (2, 1, 3), (-1, -4, -2), (1, 3, -5)])
def test_a_kernel_fills_what_python_fills(compiled, function, place):
    seen, expected = given(), given()
    compiled[function](seen, *place)
    function(expected, *place)
    for name in Given._fields:
        np.testing.assert_array_equal(getattr(seen, name), getattr(expected, name), name, strict=True)


def test_an_inner_kernel_sees_the_rows_it_is_given():
    seen, expected = given(), given()
    lean_kernel(below)(seen, 1, 2, 3)
    totals = []
    for plane in (expected.cube[1], expected.cube[-1]):
        plane[0, -1] += expected.line[-1]
        totals.append(plane.size + plane[1].sum() + plane[-1][-1] + len(plane))
    expected.cube[1, 2, 3] = sum(totals)
    np.testing.assert_array_equal(seen.cube, expected.cube)


BEYOND = """
import numpy as np
from workbench.jit import lean_kernel

@lean_kernel
def beyond(table, k):
    return table[0, k] + table[1][k]

table = np.ones((2, 3))
print(beyond(table, 2))
try:
    beyond(table, 3)
except IndexError as error:
    print(error)
"""


def test_bounds_are_checked_where_numba_is_told_to(tmp_path):
    environment = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PATH": ""}
    (tmp_path / "beyond.py").write_text(BEYOND)
    environment["PYTHONPATH"] = ":".join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, tmp_path / "beyond.py"], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.split("\n")[0] == "2.0"
    assert "out of bounds" in done.stdout
