"""Prints how much a sweep gains from a second worker process; run with `pytest -s tests/benchmarks`."""

import os
import sys
import time
from pathlib import Path

import pytest
from loky import ProcessPoolExecutor
from polars.testing import assert_frame_equal

from workbench.sweeps import ONE_THREAD, Task, run_tasks

SUPPORT = Path(__file__).parents[1] / "support"
TASKS, LEAST_S = 40, 1.0


@pytest.mark.timeout(600)
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two processors")
def test_two_workers_against_one(tmp_path, monkeypatch, budget):
    """Budget: 1.8 times one worker, 40 tasks of at least 1 s each, the pools being up before the clock starts."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))
    sys.path.insert(0, str(SUPPORT))
    from sweep_tasks import burn

    burn(0, 1_000_000)  # the first call is slower than all that follow
    start = time.perf_counter()
    burn(0, 1_000_000)
    rounds = int(1.5 * LEAST_S / (time.perf_counter() - start) * 1_000_000)
    tasks = [Task("sweep_tasks:burn", {"task": task, "rounds": rounds}, f"task {task}") for task in range(TASKS)]
    taken, found = {}, {}
    for workers in (1, 2):
        with ProcessPoolExecutor(max_workers=workers, env=ONE_THREAD) as pool:
            list(pool.map(burn, range(4 * workers), [rounds // 10] * 4 * workers))  # all are up, and have imported
            start = time.perf_counter()
            found[workers] = run_tasks(tasks, executor=pool, workers=workers, folder=tmp_path / str(workers))
            taken[workers] = time.perf_counter() - start
    ratio = taken[1] / taken[2]
    print(
        f"{taken[1]:.1f} s and {taken[2]:.1f} s; load average {os.getloadavg()[0]:.1f}, of which 2 are this benchmark"
    )
    for one, two in zip(found[1], found[2], strict=True):
        assert_frame_equal(one.tables["states"], two.tables["states"])
    assert taken[1] >= TASKS * LEAST_S
    budget("sweep", ratio, f"{TASKS} tasks of {taken[1] / TASKS:.2f} s")
