"""Sweeps on a real Dask cluster of worker processes: equal tables, a killed worker, another workbench, little held."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask
import polars as pl
import pytest
from distributed import Client, LocalCluster
from polars.testing import assert_frame_equal

import workbench as wb
from workbench.catalogue import sweeping
from workbench.catalogue.spec import find
from workbench.cli import main
from workbench.errors import UserError, WorkbenchError
from workbench.paths import PACKAGE, facts_folder
from workbench.sweeps import PENDING_PER_WORKER, Task, content_key, key_of, run_tasks

SUPPORT = Path(__file__).parent / "support"
GRID = {"nodes": [4, 8], "overhead_factor": [0.5, 1.0, 2.0]}


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process of its own; a task that costs two of them is given up."""
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    few = {"distributed.scheduler.allowed-failures": 1}
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set(few),
    ):
        patch.setenv("PYTHONPATH", path)
        with (
            LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
            Client(cluster) as client,
        ):
            yield client


def sweep(folder, **more):
    return wb.sweep("lambdascale/block-count", GRID, folder=folder, **more)


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    return sweep(tmp_path_factory.mktemp("serial"), workers=1)


def test_tables_equal_those_of_one_worker_here_and_are_read_again_by_anybody(client, serial, tmp_path):
    told = []
    far = sweep(tmp_path, executor=client, progress=lambda *counts: told.append(counts))
    assert set(far.tables) == set(serial.tables)
    for name, table in serial.tables.items():
        assert_frame_equal(far.tables[name], table)
    assert_frame_equal(far.summary(), serial.summary())
    assert told == [(done, 0, 6) for done in range(7)]
    again = sweep(tmp_path, executor=client.get_executor())
    assert (far.kept, again.kept) == (0, 6)
    assert_frame_equal(again.tables["best"], serial.tables["best"])


def test_the_command_line_finds_the_cluster_by_its_address(client, serial, tmp_path, capsys):
    grid = [part for name, values in GRID.items() for part in ("--grid", f"{name}={','.join(map(str, values))}")]
    more = ["--scheduler", client.scheduler.address, "--folder", str(tmp_path), "--out", str(tmp_path / "it.csv")]
    assert main(["sweep", "lambdascale/block-count", *grid, *more]) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "6 of 6 runs, 0 of them kept from before"
    assert_frame_equal(pl.read_csv(tmp_path / "it.csv").cast(serial.summary().schema), serial.summary())


def test_a_killed_worker_costs_only_its_own_task(client, tmp_path):
    """Marks say which process began which task; the one that is killed has kept all it did but the last."""
    log, folder = tmp_path / "log", tmp_path / "kept"
    log.mkdir()
    tasks = [Task("sweep_tasks:begun", {"number": n, "log": str(log), "sleep_s": 1.0}, str(n)) for n in range(8)]
    keys = [key_of(task) for task in tasks]
    killed = {}

    def kept(number):
        return (folder / keys[number][:2] / keys[number][2:]).is_dir()

    def kill():
        while not killed:
            marks = sorted((tuple(map(int, path.name.split("-"))) for path in log.iterdir()), key=lambda mark: mark[2])
            number, process, began_ns = marks[-1] if marks else (0, 0, time.time_ns())
            earlier = [mark[0] for mark in marks[:-1] if mark[1] == process]
            if earlier and time.time_ns() - began_ns > 3e8 and all(map(kept, earlier)):
                os.kill(process, signal.SIGKILL)
                killed.update(process=process, number=number)
            time.sleep(0.02)

    watcher = threading.Thread(target=kill)
    watcher.start()
    finished = run_tasks(tasks, executor=client, folder=folder)
    watcher.join()
    assert [result.table("squares")["square"][0] for result in finished] == [n * n for n in range(8)]
    began = Counter(int(path.name.split("-")[0]) for path in log.iterdir())
    assert began == {number: 1 + (number == killed["number"]) for number in range(8)}
    client.wait_for_workers(2)


def test_a_task_that_costs_every_worker_is_given_up(client, tmp_path):
    with pytest.raises(WorkbenchError, match=r"^point: the worker was lost \(KilledWorker\); run it again\.$"):
        run_tasks([Task("sweep_tasks:vanish", {"number": 3}, "point")], executor=client, folder=tmp_path)
    client.wait_for_workers(2)


def test_a_failure_on_a_cluster_reads_like_one_here_and_is_tried_again(client, tmp_path):
    for _ in range(2):
        with pytest.raises(UserError, match=r"^number 3: numbers\.csv, data row 3: three is refused; take four\.$"):
            run_tasks([Task("sweep_tasks:refuse", {"number": 3}, "number 3")], executor=client, folder=tmp_path)


def test_a_client_that_was_closed_is_one_sentence(client, tmp_path):
    """What was kept is found without any cluster."""
    tasks = [Task("sweep_tasks:square", {"number": 3}, "three")]
    with Client(client.cluster, set_as_default=False) as other:
        first = run_tasks(tasks, executor=other, folder=tmp_path)
    assert run_tasks(tasks, executor=other, folder=tmp_path)[0].place == first[0].place
    with pytest.raises(UserError, match=r"cannot be asked \(its client is closed\); connect a new client\."):
        run_tasks([Task("sweep_tasks:square", {"number": 4}, "four")], executor=other, folder=tmp_path)


class Counting(ThreadPoolExecutor):
    """One thread that knows how much was ever under way at once."""

    def __init__(self):
        super().__init__(1)
        self.given, self.most = [], 0

    def submit(self, *call):
        self.given.append(super().submit(*call))
        self.most = max(self.most, sum(not future.done() for future in self.given))
        return self.given[-1]


class Growing:
    """A cluster without workers at first, as behind a queue of jobs; then it has three."""

    def __init__(self, pool):
        self.pool, self.asked = pool, 0

    def get_executor(self, *, pure):
        return self.pool

    def nthreads(self):
        self.asked += 1
        return {"one": 2, "other": 1} if self.asked > 1 else {}

    def run(self, function, *given, workers, on_error):
        assert workers == ["one", "other"]


def test_as_much_is_under_way_as_the_cluster_has_workers_by_now(tmp_path):
    with Counting() as pool:
        seen = []
        tasks = [Task("sweep_tasks:square", {"number": n, "sleep_s": 0.08}, str(n)) for n in range(40)]
        run_tasks(tasks, executor=Growing(pool), folder=tmp_path, progress=lambda *_: seen.append(pool.most))
    assert seen[4] == PENDING_PER_WORKER
    assert pool.most == 3 * PENDING_PER_WORKER


def test_a_worker_with_another_workbench_or_other_files_is_refused(tmp_path, monkeypatch):
    """Its answer would be kept under the name of ours."""
    mine = tmp_path / "mine.toml"
    shutil.copy(facts_folder() / "clusters" / "blitzscale-a.toml", mine)

    class Elsewhere(ThreadPoolExecutor):
        def submit(self, *call):
            mine.write_text(mine.read_text().replace("12.5e9", "25e9"))
            return super().submit(*call)

    with Elsewhere(1) as executor, pytest.raises(UserError, match=r"another one on .*; give a path that all workers"):
        wb.sweep("blitzscale/fig14", {"cluster": [str(mine)]}, folder=tmp_path / "kept", executor=executor)
    monkeypatch.setattr(sweeping, "_facts", lambda: "other facts")
    asked = sweeping.tasks_of(find("blitzscale/fig14"), [{}], {}, backend=None, seed=0, replications=1, quick=True)
    monkeypatch.undo()
    with ThreadPoolExecutor(1) as executor, pytest.raises(UserError, match="runs another workbench, or other versions"):
        run_tasks(asked, executor=executor, folder=tmp_path / "kept")
    assert list((tmp_path / "kept").rglob("*.parquet")) == []


MOVED = """
import sys
from pathlib import Path
from workbench.sweeps import content_key
name = "workbench.transfer.policy.order"
print(content_key(name))
file = Path(sys.modules[name].__file__)
file.write_text(file.read_text() + "# edited")
print(content_key(name), file)
"""


def test_the_content_of_a_module_is_known_wherever_it_is_installed(tmp_path):
    """A copy elsewhere agrees with ours until it is edited."""
    shutil.copytree(PACKAGE, tmp_path / "workbench", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(facts_folder(), tmp_path / "workbench" / "_data")
    command = [sys.executable, "-c", MOVED]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True)
    moved, edited, file = done.stdout.decode().split()
    assert Path(file).is_relative_to(tmp_path), done.stderr
    assert moved == content_key("workbench.transfer.policy.order") != edited


HELD = """
import sys
from concurrent.futures import ThreadPoolExecutor
from peak_memory import peak_bytes
from workbench.sweeps import Task, run_tasks
def run(count, floats):
    tasks = [Task("sweep_tasks:heavy", {"number": n, "floats": floats}, str(n)) for n in range(count)]
    with ThreadPoolExecutor(2) as pool:
        return run_tasks(tasks, executor=pool, workers=2, folder=sys.argv[1])
run(8, 500_000)
before = peak_bytes()
finished = run(80, 500_000)
print(peak_bytes() - before, sum(len(result.table("numbers")) for result in finished))
"""


def test_a_longer_sweep_holds_no_more(tmp_path):
    """72 more results of 4 MB each, 288 MB in all, while at most 8 are under way."""
    command = [sys.executable, "-c", HELD, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    more, rows = map(int, done.stdout.split())
    assert rows == 80 * 500_000
    assert more < 96e6
