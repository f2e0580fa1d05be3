"""Pipelines among chains that load: by hand, by walking through time, by simulation; and no slot is used twice."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.chains import Fleet, loading_path, loading_steps, new_chains
from workbench.chains.policy.pipelines import fewest_hops
from workbench.chains.simulated import simulate_loading, simulate_loading_steps
from workbench.errors import InputError


def alike(sizes, slots, enter_s=1, block_s=1) -> Fleet:
    """Servers of a chain with so many blocks and cache slots at each place."""
    sizes, slots = np.asarray(sizes), np.asarray(slots)
    return Fleet(
        memory_bytes=sizes * 100 + slots,
        communication_s=np.full(sizes.size, enter_s),
        compute_s=np.full(sizes.size, block_s),
        layers=int(sizes.sum()),
        block_bytes=100,
        cache_bytes=1,
    )


@st.composite
def loading(draw):
    """A few small servers with whole seconds, that hold their blocks at any time and are grouped in any way."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes, nodes = rng.integers(1, 5, rng.integers(1, 4)), int(rng.integers(1, 7))
    ready = [rng.integers(0, 20, (nodes, size)) for size in sizes]
    cut = np.sort(rng.integers(0, nodes + 1, 2))
    planned = [part.tolist() for part in np.split(rng.permutation(nodes), cut) if len(part)]
    fleet = alike(sizes, rng.integers(4, 20, sizes.size), rng.integers(1, 3), rng.integers(0, 3))
    made = new_chains(fleet, sizes.tolist(), ready, planned)
    return draw(st.sampled_from([made, made.loaded])), int(rng.integers(1, 60))


def second_by_second(made, jobs) -> list[tuple[int, int]]:
    """Begin and end of each job, by asking in every second who can take one."""
    told, now = [], 0
    ranked = sorted(range(len(made.chains)), key=lambda k: (made.chains[k].service_s, not made.chains[k].complete))
    inside: list[tuple[int, int]] = []  # end, chain
    while len(told) < jobs:
        inside = [one for one in inside if one[0] > now]
        for k in ranked:
            chain = made.chains[k]
            while len(told) < jobs and chain.steps <= now:
                taken = dict.fromkeys(chain.blocks, 0)
                for _, other in inside:
                    for where, blocks in made.chains[other].blocks.items():
                        taken[where] = taken.get(where, 0) + blocks
                if any(taken[where] + blocks > made.slots[where[0]] for where, blocks in chain.blocks.items()):
                    break
                inside.append((now + round(chain.service_s), k))
                told.append((now, now + round(chain.service_s)))
        now += 1
    return sorted(told)


def test_by_hand():
    """Two servers of two blocks and four slots, one with its first block at 1 and all at 3, the other at 2 and 9.

    The pipeline forms at 2: a hop of 1 s and a block of 1 s on each, 4 s a job, a slot on each, so four jobs, which end
    at 6. The first server is complete at 3, but has no slot free: its chain takes two jobs of 3 s at 6 and leaves none
    for a second round. So the other server is idle until it is complete, at 9.
    """
    made = new_chains(alike([2], [4]), [2], [np.array([[1, 3], [9, 2]])], [(0, 1)])
    pipeline, first, second = made.chains[2], *made.chains[:2]
    assert (pipeline.steps, pipeline.hops, pipeline.capacity, pipeline.service_s) == (2, 2, 4, 4.0)
    assert (first.steps, second.steps, first.hops, first.capacity, first.service_s) == (3, 9, 1, 2, 3.0)
    path = loading_path(made, 1.0, 10)
    assert path.start_s.tolist() == [2, 2, 2, 2, 6, 6, 9, 9, 9, 9]
    assert path.finish_s.tolist() == [6, 6, 6, 6, 9, 9, 12, 12, 12, 12]
    assert made.even_step_s == 1.0  # one step sooner, one hop more
    alone = loading_path(made.loaded, 1.0, 10)
    assert alone.start_s.tolist() == [3, 3, 6, 6, 9, 9, 9, 9, 12, 12]


def test_a_chain_takes_what_a_round_leaves():
    """Three of four blocks on one server: a round of two jobs leaves six of the other's eight slots, one job of four.

    Complete at 5, it takes one then, and one more when the round ends, at 2 + 2 + 4 s.
    """
    ready = [np.array([[1, 1, 1, 30], [5, 5, 5, 2]])]
    path = loading_path(new_chains(alike([4], [8]), [4], ready, [(0, 1)]), 1.0, 5)
    assert path.start_s.tolist() == [2, 2, 5, 8, 10]
    assert path.finish_s.tolist() == [8, 8, 10, 13, 15]


@settings(max_examples=150)
@given(loading())
def test_formula_simulation_and_walk_agree(case):
    made, jobs = case
    wanted = second_by_second(made, jobs)
    for path in (loading_path(made, 1.0, jobs), simulate_loading(made, 1.0, jobs)):
        assert sorted(zip(path.start_s, path.finish_s, strict=True)) == wanted


@settings(max_examples=60)
@given(loading(), st.floats(0.01, 10))
def test_every_job_is_served_once_and_no_slot_twice(case, step_s):
    made, jobs = case
    for path in (loading_path(made, step_s, jobs), simulate_loading(made, step_s, jobs)):
        chains = [made.chains[k] for k in path.place]
        assert path.start_s.size == jobs
        assert all(path.start_s >= [chain.steps * step_s for chain in chains])
        assert path.finish_s.tolist() == (path.start_s + [chain.service_s for chain in chains]).tolist()
        for instant in set(path.start_s):
            taken: dict[tuple[int, int], int] = {}
            for k in np.flatnonzero((path.start_s <= instant) & (instant < path.finish_s)):
                for where, blocks in chains[k].blocks.items():
                    taken[where] = taken.get(where, 0) + blocks
            assert all(blocks <= made.slots[place] for (place, _), blocks in taken.items())


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 4), min_size=5, max_size=5), min_size=1, max_size=3))
def test_no_choice_of_servers_has_fewer_hops(ready):
    ready = np.array(ready)
    forms, runs = fewest_hops(ready, range(len(ready)))
    held = ready <= forms
    assert held.any(axis=0).all()
    assert not (ready < forms).any(axis=0).all()
    assert all(held[node, block] for block, node in enumerate(runs))
    choices = product(*(np.flatnonzero(column) for column in held.T))
    assert sum(a != b for a, b in pairwise(runs)) == min(sum(a != b for a, b in pairwise(one)) for one in choices)


def test_multicast_steps():
    """Two sources, four destinations: ⌈14/2⌉ + ⌈log2 3⌉ - 1 steps until a sub-group's servers hold all jointly."""
    ours, theirs = loading_steps([14, 13, 14], 2, 4), simulate_loading_steps([14, 13, 14], 2, 4)
    assert [one.tolist() for one in ours] == [one.tolist() for one in theirs]
    assert ours[0][[2, 4]].min(axis=0).max() == 7 + 2 - 1
    assert ours[0][2:].max(axis=1).tolist() == [13 + 2] * 4


READY = [np.array([[1, 1], [2, 2]])]


@pytest.mark.parametrize(
    ("bad", "names"),
    [
        (lambda: new_chains(alike([2], [4]), [3], READY, [(0, 1)]), "blocks"),
        (lambda: new_chains(alike([2], [4]), [1, 1], READY, [(0, 1)]), "blocks"),
        (lambda: new_chains(alike([2], [4]), [2], [], [(0, 1)]), "ready"),
        (lambda: new_chains(alike([2], [4]), [2], [READY[0][:, :1]], [(0, 1)]), "ready"),
        (lambda: new_chains(alike([2], [4]), [2], READY, [(0, 0)]), "planned"),
        (lambda: new_chains(alike([2], [4]), [2], READY, [(0, 2)]), "planned"),
        (lambda: new_chains(alike([2], [4]), [2], READY, [()]), "planned"),
        (lambda: new_chains(alike([2], [1]), [2], READY, [(0, 1)]), "more servers"),
        (lambda: loading_path(new_chains(alike([2], [4]), [2], READY, [(0, 1)]), 0.0, 3), "step_s"),
        (lambda: simulate_loading(new_chains(alike([2], [4]), [2], READY, [(0, 1)]), 1.0, 0), "jobs"),
    ],
)
def test_what_cannot_be_is_refused(bad, names):
    with pytest.raises(InputError, match=names):
        bad()
