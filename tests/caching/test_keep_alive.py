"""Keep-alive on many nodes: against a hand calculation, a plain replay, its SimPy twin, and rules that must hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.caching.kernels.keep_alive import keep_alive_slow
from workbench.caching.model import KeepAlive, keep_alive
from workbench.caching.policy import COLD, HOT, WARM
from workbench.caching.simulated import simulate_keep_alive
from workbench.errors import InputError

ARRIVALS = st.lists(st.integers(0, 120), min_size=1, max_size=40).map(sorted)
CLUSTERS = st.builds(
    KeepAlive,
    nodes=st.integers(1, 6),
    memory_keep_s=st.integers(0, 40),
    gpu_keep_s=st.integers(0, 10),
    ssd_to_memory_s=st.integers(0, 20),
    memory_to_gpu_s=st.integers(0, 5),
    serve_s=st.integers(1, 4),
    from_last_use=st.booleans(),
    by_locality=st.booleans(),
)


def same(one, other):
    assert one.kind.tolist() == other.kind.tolist()
    assert one.begin_s.tolist() == other.begin_s.tolist()
    assert one.finish_s.tolist() == other.finish_s.tolist()
    assert (one.seconds, one.over_s, one.copy_s) == (other.seconds, other.over_s, other.copy_s)


def test_one_node_by_hand():
    """Cold 0-28 (20 + 5 + 3). At 29 the GPU copy is still there: hot to 32. At 40 only memory: 5 + 3 to 48. The copy of
    28 is dropped at the end of 59 (more than 30 s), so at 60 the next start is cold: to 88, kept to the end at 88."""
    run = keep_alive([0, 29, 40, 60], KeepAlive(nodes=1, memory_keep_s=30))
    assert run.kind.tolist() == [COLD, HOT, WARM, COLD]
    assert run.finish_s.tolist() == [28, 32, 48, 88]
    assert run.seconds == 89
    assert run.copy_s == (59 - 28) + 1  # seconds 28 to 58, and second 88
    assert run.over_s == run.copy_s - 3  # in 29, 30 and 31 the one copy serves


def test_keep_alive_counts_from_the_load_unless_asked_otherwise():
    """Loaded at 28, used until 43: at 60 the load is more than 20 s ago, the last use is not."""
    times = [0, 35, 60]
    from_load = keep_alive(times, KeepAlive(nodes=1, memory_keep_s=20))
    from_use = keep_alive(times, KeepAlive(nodes=1, memory_keep_s=20, from_last_use=True))
    assert from_load.kind.tolist() == [COLD, WARM, COLD]
    assert from_use.kind.tolist() == [COLD, WARM, WARM]


def test_locality_finds_the_copy_that_the_first_idle_node_lacks():
    """Node 0 is busy from 0 to 28, node 1 from 4 to 32; at 33 both are idle, only node 1's GPU still holds it."""
    times = [0, 4, 33]
    blind = keep_alive(times, KeepAlive(nodes=2, memory_keep_s=0, gpu_keep_s=1))
    near = keep_alive(times, KeepAlive(nodes=2, memory_keep_s=0, gpu_keep_s=1, by_locality=True))
    assert blind.kind.tolist() == [COLD, COLD, COLD]
    assert near.kind.tolist() == [COLD, COLD, HOT]


@given(ARRIVALS, CLUSTERS)
def test_simulation_and_compiled_loop_are_one(times, cluster):
    same(keep_alive(times, cluster), simulate_keep_alive(times, cluster))


@given(ARRIVALS, CLUSTERS)
def test_the_plain_replay_agrees(times, cluster):
    cluster = cluster.model_copy(update={"from_last_use": False, "by_locality": False})
    run = keep_alive(times, cluster)
    kinds, totals = keep_alive_slow(times, *list(cluster.model_dump().values())[:6])
    assert (run.kind.tolist(), (run.seconds, run.over_s, run.copy_s)) == (kinds, totals)


@given(ARRIVALS, CLUSTERS)
def test_nothing_overlaps_and_nobody_is_lost(times, cluster):
    run = keep_alive(times, cluster)
    assert (run.begin_s >= times).all()
    assert (np.diff(run.begin_s) >= 0).all()
    load = np.where(run.kind == COLD, cluster.ssd_to_memory_s, 0) + np.where(
        run.kind != HOT, cluster.memory_to_gpu_s, 0
    )
    assert (run.finish_s - run.begin_s == load + cluster.serve_s).all()
    busy = [int(((run.begin_s <= t) & (t < run.finish_s)).sum()) for t in range(run.seconds)]
    assert max(busy) <= cluster.nodes
    assert run.kind[0] == COLD
    assert run.copy_s <= cluster.nodes * run.seconds
    assert sum(run.shares().values()) == pytest.approx(1)


@pytest.mark.parametrize("times", [[], [1, 0], [-1.0], [float("nan")], [[0.0]]])
def test_what_is_no_row_of_arrivals_is_refused(times):
    with pytest.raises(InputError, match="arrival_s"):
        keep_alive(times, KeepAlive())


def test_a_cluster_that_cannot_be_is_refused():
    with pytest.raises(InputError, match=r"KeepAlive\.nodes"):
        KeepAlive(nodes=0)
