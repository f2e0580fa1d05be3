"""Worker processes: started without the user's script, watched over, ended without a trace."""

import os
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec

import psutil
import pytest
import worker_tasks

from workbench.errors import InputError, MissingExtra, UserError
from workbench.executor.faults import RunFailed
from workbench.executor.gathering import gather
from workbench.executor.processes import LARGEST_POOL, Pool
from workbench.executor.watching import Died, Done, Due, Hung, Said, watch

real = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]


def first(kind, workers, pool, **options):
    """The first event of a kind within 10 s."""
    for event in watch(workers, pool.beats, alarms=[time.monotonic() + 10], **options):
        if isinstance(event, kind):
            return event
        assert not isinstance(event, Due), f"no {kind.__name__} within 10 s"
    raise AssertionError


def test_without_torch_the_command_that_adds_it(monkeypatch):
    monkeypatch.setattr("workbench.executor.needs.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install") as caught:
        Pool(2)
    assert caught.value.extra == "torch"


def test_listing_the_modules_neither_needs_torch_nor_leaves_one_thread():
    """Whoever imports them all (a documentation tool, the doctests) may lack torch, and keeps its threads if not."""
    code = (
        "import importlib, os, pkgutil, sys, workbench.executor as room\n"
        "sys.modules['torch'] = None\n"
        "for module in pkgutil.walk_packages(room.__path__, 'workbench.executor.'):\n"
        "    importlib.import_module(module.name)\n"
        "print(os.environ.get('OMP_NUM_THREADS'))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert (run.stdout.strip(), run.stderr) == ("None", "")


@pytest.mark.parametrize("size", [0, -1, LARGEST_POOL + 1, 2.5, "a", None])
def test_impossible_sizes_are_refused(size, monkeypatch):
    monkeypatch.setattr("workbench.executor.needs.find_spec", lambda name: name)
    with pytest.raises(InputError, match=r"size': is .* from 1 to 64"):
        Pool(size)


class TestPool:
    pytestmark = real

    @pytest.mark.parametrize("threads", [None, "3"])
    def test_starting_workers_leaves_the_program_as_it_was(self, monkeypatch, threads):
        if threads is None:
            monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("OMP_NUM_THREADS", threads)
        main = sys.modules["__main__"]
        with Pool(1) as own, own.lease(1) as workers:
            workers[0].give(worker_tasks.threads)
            assert gather(workers, own.beats, 30) == [(1, "1")]
        assert os.environ.get("OMP_NUM_THREADS") == threads
        assert sys.modules["__main__"] is main

    def test_workers_have_one_thread(self, pool):
        with pool.lease(2) as workers:
            for worker in workers:
                worker.give(worker_tasks.threads)
            assert gather(workers, pool.beats, 30) == [(1, "1")] * 2

    def test_neither_torch_nor_a_guarded_main_is_needed_in_the_parent(self, tmp_path):
        script = tmp_path / "unguarded.py"
        script.write_text(
            "import sys\n"
            "print('top')\n"
            "from workbench.executor.processes import Pool\n"
            "with Pool(1) as pool, pool.lease(1) as workers:\n"
            "    print(len(workers), 'torch' in sys.modules)\n"
        )
        run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True)
        assert run.stdout.split() == ["top", "1", "False"]

    def test_a_worker_is_the_same_process_for_the_next_task(self, pool):
        answers = []
        for value in ("first", "second"):
            with pool.lease(1) as [worker]:
                worker.give(worker_tasks.remember, value)
                answers += gather([worker], pool.beats, 30)
        assert answers == [None, "first"]

    def test_an_error_in_a_worker_is_one_sentence_with_its_place(self, pool):
        with pool.lease(2) as workers:
            workers[0].give(worker_tasks.remember, 1)
            workers[1].give(worker_tasks.fail)
            with pytest.raises(
                RunFailed, match=r"Worker 1 failed with ValueError: no such luck \(worker_tasks\.py:\d+\)"
            ):
                gather(workers, pool.beats, 30)

    def test_a_lost_worker_is_noticed_and_replaced(self, pool):
        with pool.lease(2) as workers:
            lost = workers[1].process.pid
            workers[1].give(worker_tasks.wait)
            assert first(Said, workers[1:], pool) == Said(1, "waiting")
            workers[1].kill()
            assert first(Died, workers, pool).worker == 1
        with pool.lease(2) as workers:
            assert lost not in pool.pids()
            for worker in workers:
                worker.give(worker_tasks.remember, 0)
            assert len(gather(workers, pool.beats, 30)) == 2

    def test_a_death_is_noticed_without_waiting_for_a_heartbeat(self, pool):
        """By the sentinel, with a heartbeat of an hour; how soon, tests/benchmarks print."""
        with pool.lease(1) as workers:
            workers[0].give(worker_tasks.wait)
            first(Said, workers, pool)
            workers[0].kill()
            assert first(Died, workers, pool, heartbeat_s=3600.0).worker == 0

    def test_a_stopped_process_is_noticed_and_ended(self, pool):
        with pool.lease(2) as workers:
            workers[1].give(worker_tasks.wait)
            first(Said, workers[1:], pool)
            stopped_s = time.monotonic()
            workers[1].stop()
            event = first(Hung, workers, pool, heartbeat_s=0.6)
            assert event.worker == 1
            assert event.at_s - stopped_s >= 0.3
            stopped = psutil.Process(workers[1].process.pid)
        assert not stopped.is_running()

    def test_a_silent_watcher_raises_no_false_alarm(self, pool):
        """The watcher itself sleeps for two heartbeats, then sees live workers."""
        with pool.lease(2) as workers:
            events = watch(workers, pool.beats, alarms=[time.monotonic(), time.monotonic() + 1.5], heartbeat_s=0.6)
            assert next(events) == Due(0)
            time.sleep(1.2)
            assert next(events) == Due(1)

    def test_a_task_that_is_called_off_hands_in(self, pool):
        with pool.lease(1) as workers:
            workers[0].give(worker_tasks.wait)
            first(Said, workers, pool)
            workers[0].call_off("enough")
            assert first(Done, workers, pool) == Done(0, "called off: enough")

    def test_a_run_that_takes_too_long_ends_in_a_sentence(self, pool):
        with pool.lease(1) as workers:
            workers[0].give(worker_tasks.wait)
            with pytest.raises(RunFailed, match="longer than the 0 s it may"):
                gather(workers, pool.beats, 0.2)

    def test_an_interrupt_ends_the_busy_workers(self, pool):
        def interrupt():
            time.sleep(0.2)
            signal.raise_signal(signal.SIGINT)

        with pool.lease(1) as workers:
            pid = workers[0].process.pid
        thread = threading.Thread(target=interrupt)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it

        def run():
            with pool.lease(1) as workers:
                workers[0].give(worker_tasks.wait)
                thread.start()
                gather(workers, pool.beats, 30)

        try:
            with pytest.raises(KeyboardInterrupt):
                run()
        finally:
            signal.signal(signal.SIGINT, before)
        thread.join()
        assert not psutil.pid_exists(pid)

    def test_a_pool_leaves_no_process_behind(self):
        with Pool(2) as pool:
            with pool.lease(2):
                pids = pool.pids()
            assert all(psutil.pid_exists(pid) for pid in pids)
        assert not any(psutil.pid_exists(pid) for pid in pids)
        assert pool.pids() == []

    @pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="anonymous shared memory needs Linux")
    def test_memory_of_blocks_goes_with_its_process(self, pool):
        """A segment has no name of its own in any file system: it is deleted from the start and held by a handle."""
        with pool.lease(1) as workers:
            workers[0].give(worker_tasks.hold_blocks, 1 << 16)
            (handle,) = gather(workers, pool.beats, 30)
            segment = os.readlink(f"/proc/{workers[0].process.pid}/fd/{handle}")
            assert segment == "/memfd:workbench-blocks (deleted)"
            place = f"/proc/{workers[0].process.pid}"
            workers[0].kill()
            assert first(Died, workers, pool).worker == 0
        assert not os.path.exists(place)

    def test_workers_end_with_their_parent(self, tmp_path):
        script = tmp_path / "killed.py"
        script.write_text(
            "import os, signal\n"
            "from workbench.executor.processes import Pool\n"
            "pool = Pool(2)\n"
            "with pool.lease(2):\n"
            "    print(*pool.pids(), flush=True)\n"
            "    os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False)
        pids = [int(word) for word in run.stdout.split()]
        assert len(pids) == 2
        deadline = time.monotonic() + 30
        while alive := [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie"]:
            assert time.monotonic() < deadline, f"{alive} outlived their parent"
            time.sleep(0.05)

    def test_a_pool_that_is_too_small_says_so(self, pool):
        with pytest.raises(UserError, match="has 4 processes and the run needs 5"), pool.lease(5):
            pass
