"""Seconds of jobs by blocks and tokens: the fit of the paper's linear form, and jobs that a real process computes."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.chains import fit_compute, straightness
from workbench.chains.real import profile_jobs
from workbench.errors import InputError
from workbench.executor.processes import Pool

PARTS = st.floats(1e-5, 1e-1)
JOBS = [(1, 10, 5), (4, 10, 5), (4, 80, 5), (4, 10, 30), (2, 40, 12), (3, 1, 1)]


@given(parts=st.tuples(PARTS, PARTS, PARTS, PARTS))
def test_the_fit_finds_the_parts_that_seconds_were_made_of(parts):
    """By hand: job + m (block + n_in prompt + (n_out - 1) token), without noise; and jobs that it never saw."""
    job_s, block_s, prompt_s, token_s = parts
    seconds = [job_s + m * (block_s + n_in * prompt_s + (n_out - 1) * token_s) for m, n_in, n_out in JOBS]
    fit = fit_compute(JOBS, seconds)
    assert fit == pytest.approx(parts, rel=1e-6)
    assert fit.seconds([(7, 100, 1)]) == pytest.approx([job_s + 7 * (block_s + 100 * prompt_s)], rel=1e-6)


def test_no_part_is_below_zero():
    """Seconds that fall with the prompt have no such part."""
    fit = fit_compute(JOBS, [m * (1.0 + 0.1 * n_out - 0.001 * n_in) for m, n_in, n_out in JOBS])
    assert min(fit) >= 0
    assert fit.prompt_s == 0


def test_straightness_by_hand():
    """A line; and (0, 0), (1, 1), (2, 0): the best line is flat, at 1/3."""
    assert straightness([0, 1, 3], [1, 3, 7]) == pytest.approx(1)
    assert straightness([0, 1, 2], [0, 1, 0]) == pytest.approx(0)
    rng = np.random.default_rng(1)
    x, y = rng.random(20), rng.random(20)
    assert straightness(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


@pytest.mark.parametrize(
    ("jobs", "seconds", "message"),
    [(JOBS[:3], [1, 1, 1], "at least 4"), (JOBS, [1] * 5, "5 for 6 jobs"), (JOBS, [1, 1, 1, 1, 1, 0], "above 0")],
)
def test_what_cannot_be_fitted(jobs, seconds, message):
    with pytest.raises(InputError, match=message):
        fit_compute(jobs, seconds)


@pytest.mark.torch
@pytest.mark.real
@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it")
def test_jobs_of_a_real_process():
    """Readings of every round and job; more blocks and more tokens take longer, whatever else the machine does."""
    jobs = [(1, 8, 2), (4, 8, 2), (4, 8, 12), (1, 64, 2)]
    with Pool(1) as pool:
        found = profile_jobs(jobs, hidden=128, rounds=5, seed=1, pool=pool)
    assert found.processor_s.shape == found.wall_s.shape == (5, 4)
    assert (found.processor_s > 0).all()
    assert (found.processor_s <= found.wall_s * 1.01 + 1e-3).all()
    small, deep, long, wide = np.median(found.processor_s, axis=0)
    assert small < wide
    assert small * 2 < deep < 8 * small
    assert deep * 3 < long < 9 * deep
