"""Chains formed anew: SimPy and compiled bit for bit, a switch by hand, and no job interrupted."""

import chain_cases as cases
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.chains import (
    Fleet,
    Placement,
    Windows,
    chains_of,
    compose,
    dispatch_path,
    missing_blocks,
    place,
    plan,
    plan_windows,
    sized_jobs,
    switching_path,
    tune,
)
from workbench.chains.simulated import simulate_switching
from workbench.errors import InputError

TWO = Fleet(memory_bytes=[30, 30], communication_s=[1, 1], compute_s=[1, 1], layers=2, block_bytes=10, cache_bytes=1)
"""With c = 1 each server hosts both blocks (5 jobs, 3 s); with c = 6 one block each (20 jobs on one chain, 4 s)."""


def some_jobs(rng, count=60, rate=1.0):
    return sized_jobs(np.cumsum(rng.exponential(1 / rate, count)), rng.exponential(1.0, count))


@given(seed=st.integers(0, 2**32 - 1), grid=st.booleans())
def test_simpy_and_compiled_agree_bit_for_bit(seed, grid):
    rng = np.random.default_rng(seed)
    made = []
    while len(made) < 2:
        fleet = cases.random_fleet(rng, 6, 4)
        made = [one for one in (compose(fleet, c) for c in (1, 2, 3)) if one.chains]
    jobs = some_jobs(rng)
    if grid:
        jobs = sized_jobs(np.sort(rng.integers(0, 30, 60)).astype(float), rng.integers(0, 4, 60))
    instants = np.sort(rng.integers(0, 30, len(made) - 1)).astype(float)
    planned = plan([-np.inf, *instants], made, float(rng.choice([1.0, 10.0, 1e9])))
    compiled, simulated = switching_path(jobs, planned), simulate_switching(jobs, planned)
    assert all(np.array_equal(a, b) for a, b in zip(compiled, simulated, strict=True))
    assert (np.diff(compiled.start_s) >= 0).all()


def test_without_a_switch_it_is_dispatch():
    rng = np.random.default_rng(2)
    jobs, made = some_jobs(rng, 500, 3.0), compose(cases.FIVE, 1)
    fixed = dispatch_path(jobs, chains_of(made))
    assert switching_path(jobs, plan([-np.inf], [made], 1.0)).finish_s.tolist() == fixed.finish_s.tolist()


def test_a_switch_by_hand():
    """Two whole-model servers; at 10 they become one chain of two. The job in service until 12 on the first server ends
    on its old chain; then it drops a block and loads none. The second one is idle: its block is there. A job that comes
    at 11 waits until both belong to the chain, at 12."""
    before, after = compose(TWO, 1), compose(TWO, 6)
    assert [chain.servers for chain in before.chains] == [(0,), (1,)]
    assert [chain.servers for chain in after.chains] == [(0, 1)]
    assert missing_blocks(before.placement, after.placement).tolist() == [0, 0]
    jobs = sized_jobs([9.0, 11.0], [1.0, 1.0])
    path = switching_path(jobs, plan([-np.inf, 10.0], [before, after], 5.0))
    assert path.start_s.tolist() == [9.0, 12.0]
    assert path.finish_s.tolist() == [12.0, 16.0]
    assert path.place.tolist() == [0, 1]
    # back again at 20: each server lacks one block of 10 bytes, 2 s at 5 bytes/s
    back = plan([-np.inf, 20.0], [after, before], 5.0)
    assert back.load_s.tolist() == [[0, 0], [2, 2]]
    assert back.loaded_bytes.tolist() == [0, 20]
    path = switching_path(sized_jobs([20.0, 20.5], [1.0, 1.0]), back)
    assert path.start_s.tolist() == [22.0, 22.0]


def test_blocks_that_are_missing():
    def at(first, blocks):
        return Placement(np.array(first), np.array(blocks), np.array(first) * 0, 0, 0.0, True)

    before, after = at([0, 2, -1, 4, 0], [3, 2, 0, 2, 2]), at([1, 3, 0, -1, 5], [3, 2, 2, 0, 1])
    assert missing_blocks(before, after).tolist() == [1, 1, 2, 0, 1]


@given(seed=st.integers(0, 2**32 - 1))
def test_memory_is_never_overdrawn_and_nobody_is_interrupted(seed):
    """At every start: jobs of old and new chains together hold no more slots than a server has under its placement."""
    rng = np.random.default_rng(seed)
    jobs = some_jobs(rng, 80, 4.0)
    before, after = compose(TWO, 1), compose(TWO, 6)
    path = switching_path(jobs, plan([-np.inf, 5.0, 12.0], [before, after, before], 4.0))
    lengths = np.where(path.place == 1, 4.0, 3.0) * jobs.work[:, 0]
    assert path.finish_s - path.start_s == pytest.approx(lengths)
    for now in path.start_s:
        inside = (path.start_s <= now) & (path.finish_s > now)
        kinds = set(path.place[inside].tolist())
        if len(kinds) == 1:
            assert inside.sum() <= (20 if kinds == {1} else 10)
        # both at once only while a chain of the old kind drains a server that no new chain uses yet
        elif path.place[path.start_s == now][0] == 1:
            pytest.fail("a chain of both servers started before both were drained")


def test_windows_choose_like_tuning_does():
    """Without a switching cost the c of each window is that of the lower bound; a dear one keeps the first."""
    rng = np.random.default_rng(4)
    fleet = cases.random_fleet(rng, 12, 6)
    windows = Windows(fleet, range(1, 10))
    most = max(made.rate_per_s for made in windows.made.values())
    rates = [0.1 * most, 0.5 * most, 0.9 * most, 0.1 * most]
    free = plan_windows(windows, rates, 60.0)
    best = [tune(fleet, rate, reserved=range(1, 10)).best["lower bound"] for rate in rates]
    wanted = [c for place_of, c in enumerate(best) if place_of == 0 or c != best[place_of - 1]]
    assert [made.reserved for made in free.compositions] == wanted
    dear = plan_windows(windows, rates, 60.0, cost=1e9, bytes_per_s=1.0)
    assert len(dear.compositions) == 1
    assert dear.loaded_bytes.sum() == 0
    assert windows.choose(1e9, None, 0.0, 1.0) == max(windows.made, key=lambda c: windows.made[c].rate_per_s)


def test_what_cannot_be_planned():
    with pytest.raises(InputError, match="no c with which"):
        Windows(TWO, [25])
    with pytest.raises(InputError, match="2 kinds of work"):
        switching_path(sized_jobs([0.0], [1.0])._replace(work=np.ones((1, 2))), plan([-np.inf], [compose(TWO, 1)], 1.0))
    assert place(TWO, 1).groups == 2
    for reserved in (3, "3", [], [1, "a"], [2.5], None):
        with pytest.raises(InputError, match="'reserved'"):
            Windows(TWO, reserved)
    one = compose(TWO, 1)
    for switch_s in ("x", [0.0, 1.0], [-np.inf], [-np.inf, np.nan], [-np.inf, np.inf], [-np.inf, {}]):
        with pytest.raises(InputError, match="'switch_s'"):
            plan(switch_s, [one, one], 1.0)
    with pytest.raises(InputError, match="'switch_s'"):
        plan([-np.inf, 2.0, 1.0], [one, one, one], 1.0)
    for compositions in ([], None, [one, 3], [one, compose(cases.FIVE, 1)]):
        with pytest.raises(InputError, match="'compositions'"):
            plan([-np.inf, 1.0], compositions, 1.0)
