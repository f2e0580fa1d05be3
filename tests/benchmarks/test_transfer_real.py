"""Prints what real runs reach on this machine, beside its ceilings; run with `pytest -s tests/benchmarks`.

Meant for a quiet machine: medians of three, the ratios from readings taken in turn.
"""

import os
from importlib.util import find_spec
from statistics import median

import pytest

from workbench.executor.ceilings import measure_ceilings
from workbench.executor.faults import Kill, Stop
from workbench.executor.processes import Pool
from workbench.transfer.policy import make_schedule, steps
from workbench.transfer.real import run_multicast

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it")

STEP_S = 0.02
MIB = 1 << 20


@pytest.fixture(scope="module")
def pool():
    with Pool(8) as processes:
        yield processes


def paced(pool, name, nodes, blocks, clock):
    """Three runs with 1 MB blocks and steps of 20 ms; the number of steps by the schedule's formula."""
    schedule = make_schedule(name, nodes, blocks)
    runs = [run_multicast(schedule, blocks * 10**6, 1e6 / STEP_S, clock=clock, pool=pool) for _ in range(3)]
    model_s = steps(name, nodes, blocks) * STEP_S
    return runs, sorted(run.wall_s / model_s - 1 for run in runs)


@pytest.mark.parametrize(("clock", "low", "high"), [("real", -0.01, 0.10), ("stamped", -0.03, 0.03)])
@pytest.mark.parametrize("nodes", [4, 8])
@pytest.mark.parametrize("name", ["chain", "binomial_pipeline"])
def test_paced_wall_time_over_the_formula(pool, name, nodes, clock, low, high, budget):
    """Budget: real clock -1 % to +10 %, stamped within 3 %, at steps of 20 ms and 32 blocks."""
    runs, errors = paced(pool, name, nodes, 32, clock)
    late = median(run.overhead for run in runs)
    print(
        f"\n{name:>18} {nodes} nodes {clock:>8}: {' '.join(f'{error:+.2%}' for error in errors)}, overhead {late:.1%}, "
        f"worst lateness {max(run.lateness_worst_s for run in runs) * 1e3:.1f} ms, "
        f"waiting {median(run.waiting_share for run in runs):.0%}"
    )
    if clock == "real":
        budget("paced", median(errors), f"{name}, {nodes} processes")
    assert low <= median(errors) <= high


def test_all_schedules_in_the_predicted_order(pool):
    names = ["sequential", "binomial_tree", "faasnet_tree", "chain", "binomial_pipeline"]
    walls = {name: median(run.wall_s for run in paced(pool, name, 8, 8, "real")[0]) for name in names}
    predicted = {name: steps(name, 8, 8) * STEP_S for name in names}
    for name in names:
        print(f"\n{name:>18} 8 nodes, 8 blocks: formula {predicted[name]:.3f} s, real {walls[name]:.3f} s", end="")
    assert sorted(names, key=walls.get) == sorted(names, key=predicted.get)


@pytest.mark.parametrize("mib", [1, 4, 16])
def test_unpaced_against_the_ceilings(pool, mib, budget):
    """Budget: 60 % of one raw loopback pair, and 60 % of memory copy through shared memory."""
    schedule = make_schedule("chain", 2, 64 // mib)
    ratios, copies = [], []
    for _ in range(3):
        ceilings = measure_ceilings(2, mib * MIB, 64 * MIB, pool=pool)
        run = run_multicast(schedule, 64 * MIB, clock="unpaced", pool=pool)
        ratios.append(64 * MIB / run.wall_s / ceilings.raw_pair_bytes_per_s)
        if hasattr(os, "memfd_create"):
            run = run_multicast(schedule, 64 * MIB, clock="unpaced", path="memory", pool=pool)
            copies.append(64 * MIB / run.wall_s / ceilings.copy_bytes_per_s)
    print(
        f"\nblocks of {mib} MiB, one pair: {median(ratios):.0%} of a raw loopback pair "
        f"({ceilings.raw_pair_bytes_per_s / 1e9:.1f} GB/s), "
        f"{median(copies or [float('nan')]):.0%} of memory copy ({ceilings.copy_bytes_per_s / 1e9:.1f} GB/s)"
    )
    budget("unpaced", median(ratios), f"blocks of {mib} MiB")
    if copies:
        budget("unpaced, memory", median(copies), f"blocks of {mib} MiB")


def test_what_many_processes_move_together(pool):
    ceilings = measure_ceilings(8, 4 * MIB, pool=pool)
    for name in ("chain", "binomial_pipeline"):
        run = run_multicast(make_schedule(name, 8, 16), 64 * MIB, clock="unpaced", pool=pool)
        print(f"\n{name:>18} 8 nodes unpaced: {7 * 64 * MIB / run.wall_s / 1e9:.1f} GB/s over all links", end="")
    print(f"\nceilings: {ceilings}")


def test_detection_of_a_lost_process(pool, budget):
    """Budget: 0.1 s for a death, the heartbeat of 1 s for a hang."""
    schedule = make_schedule("binomial_pipeline", 8, 16)
    for fault, kind in ((Kill(node=3, at_s=0.15), "dead"), (Stop(node=3, at_s=0.15), "hung")):
        runs = [
            run_multicast(schedule, 16 * 10**6, 1e6 / STEP_S, fault=fault, on_fault="replan", pool=pool)
            for _ in range(3)
        ]
        found = [run.recovery.detected_s for run in runs]
        resumed = median(run.recovery.resumed_s - run.recovery.noticed_s for run in runs)
        print(f"\na {kind} process: noticed after {[round(s, 3) for s in found]} s, resumed {resumed:.2f} s later")
        budget(kind, median(found), "binomial pipeline, 8 processes")
