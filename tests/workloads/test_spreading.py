"""Times on a grid are spread inside their cells and nowhere else."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.workloads.spreading import found_cell_s, spread_in_cells

STAMPS = st.lists(st.integers(0, 50), min_size=1, max_size=80).map(lambda entry: np.sort(np.array(entry, dtype=float)))


@given(STAMPS, st.sampled_from([0.5, 1.0, 3.0]), st.integers(0, 1000))
@settings(deadline=None)
def test_each_stays_in_its_cell_and_in_order(times, cell_s, seed):
    moved = spread_in_cells(times, cell_s, seed)
    assert np.all(np.diff(moved) >= 0)
    assert np.all(moved >= times)
    assert np.all(moved < times + cell_s)
    following = np.array([min((stamp for stamp in times if stamp > entry), default=np.inf) for entry in times])
    assert np.all(moved < following)
    assert np.array_equal(moved, spread_in_cells(times, cell_s, seed))


def test_moves_are_uniform():
    moved = spread_in_cells(np.zeros(20_000), 3.0, 1)
    assert np.allclose(np.quantile(moved, [0.1, 0.5, 0.9]), [0.3, 1.5, 2.7], atol=0.05)


def test_grids_are_found_and_nothing_else():
    assert found_cell_s(np.repeat(np.arange(50) * 3.0, 10)) == 3.0
    assert found_cell_s(np.arange(50.0)) is None
    assert found_cell_s(np.zeros(9)) is None
