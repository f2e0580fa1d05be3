"""Sweeps: the same tables for any number of workers, nothing computed twice, nothing lost by a kill."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import workbench as wb
from workbench.errors import UnknownName, UserError, WorkbenchError
from workbench.sweeps import Task, key_of, run_tasks

SUPPORT = Path(__file__).parent / "support"


@pytest.fixture(autouse=True)
def workers_find_the_functions(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")]))


def squares(numbers, **more):
    return [Task("sweep_tasks:square", {"number": number, **more}, f"square of {number}") for number in numbers]


def values(finished):
    return [result.tables["squares"]["square"][0] for result in finished]


def test_results_come_in_order_and_are_read_the_second_time(tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    first = run_tasks(squares(range(6), log=str(log)), folder=tmp_path / "kept", workers=2)
    assert values(first) == [0, 1, 4, 9, 16, 25]
    assert not any(result.kept for result in first)
    second = run_tasks(squares(range(8), log=str(log)), folder=tmp_path / "kept", workers=1)
    assert [result.kept for result in second] == [True] * 6 + [False] * 2
    assert len(list(log.iterdir())) == 8


def test_one_and_two_workers_and_threads_give_equal_tables(tmp_path):
    tasks = squares(range(12))
    one = run_tasks(tasks, folder=tmp_path / "one", workers=1)
    two = run_tasks(tasks, folder=tmp_path / "two", workers=2)
    with ThreadPoolExecutor(3) as executor:
        threads = run_tasks(tasks, folder=tmp_path / "threads", executor=executor)
    for a, b, c in zip(one, two, threads, strict=True):
        assert_frame_equal(a.tables["squares"], b.tables["squares"])
        assert_frame_equal(a.tables["squares"], c.tables["squares"])


def test_kept_results_are_plain_parquet(tmp_path):
    run_tasks(squares([7]), folder=tmp_path, workers=1)
    (file,) = tmp_path.rglob("*.parquet")
    assert pl.read_parquet(file)["square"].to_list() == [49]
    assert list(tmp_path.rglob(".*")) == []


def test_a_damaged_result_is_computed_again(tmp_path):
    run_tasks(squares([7]), folder=tmp_path, workers=1)
    (file,) = tmp_path.rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:40])
    (again,) = run_tasks(squares([7]), folder=tmp_path, workers=1)
    assert not again.kept
    assert values([again]) == [49]


@pytest.mark.parametrize("manifest", ["null", "5", "[1]", "{", '{"squares": "0"}', '["squares"]'])
def test_a_damaged_list_of_tables_is_computed_again(tmp_path, manifest):
    run_tasks(squares([7]), folder=tmp_path, workers=1)
    (file,) = tmp_path.rglob("tables.json")
    file.write_text(manifest)
    (again,) = run_tasks(squares([7]), folder=tmp_path, workers=1)
    assert not again.kept
    assert run_tasks(squares([7]), folder=tmp_path, workers=1)[0].kept


def test_another_number_in_a_kept_file_is_noticed(tmp_path):
    """A readable Parquet file with a wrong number in it: nothing but its sum tells."""
    run_tasks(squares([7]), folder=tmp_path, workers=1)
    (file,) = tmp_path.rglob("*.parquet")
    pl.read_parquet(file).with_columns(square=pl.lit(50)).write_parquet(file)
    (again,) = run_tasks(squares([7]), folder=tmp_path, workers=1)
    assert not again.kept
    assert values([again]) == [49]


@pytest.mark.parametrize("more", [{"workers": 0}, {"workers": "2"}, {"workers": True}, {"executor": 3}])
def test_workers_that_are_none(tmp_path, more):
    with pytest.raises(UserError, match="A sweep"):
        run_tasks(squares([1]), folder=tmp_path, **more)


def test_an_executor_that_was_shut_down_is_one_sentence(tmp_path):
    executor = ThreadPoolExecutor(1)
    executor.shutdown()
    with pytest.raises(UserError, match=r"the executor takes no more tasks \(.*\); give one that is open\.$"):
        run_tasks(squares([1]), folder=tmp_path, executor=executor)


def test_two_runs_share_a_folder(tmp_path):
    """Both compute, whoever keeps a result second finds it there; both get all rows."""
    found = {}

    def run(name):
        with ThreadPoolExecutor(1) as executor:
            found[name] = values(run_tasks(squares(range(12), sleep_s=0.02), folder=tmp_path, executor=executor))

    both = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert found["a"] == found["b"] == [n * n for n in range(12)]
    assert len(list(tmp_path.rglob("*.parquet"))) == 12
    assert list(tmp_path.rglob(".*")) == []


def test_a_failure_names_the_point_and_keeps_the_others(tmp_path):
    tasks = [Task("sweep_tasks:refuse", {"number": number}, f"number {number}") for number in (1, 2, 3)]
    with pytest.raises(UserError) as caught:
        run_tasks(tasks, folder=tmp_path, workers=1)
    assert str(caught.value) == "number 3: numbers.csv, data row 3: three is refused; take four."
    assert len(list(tmp_path.rglob("*.parquet"))) == 2


@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        ("break_down", WorkbenchError, "point: ZeroDivisionError: division by zero"),
        ("vanish", WorkbenchError, "point: the worker was lost"),
        ("mend", UserError, "point: 5 can be mended"),
    ],
)
def test_other_failures_are_one_sentence_too(tmp_path, function, kind, words):
    with pytest.raises(kind, match=words):
        run_tasks([Task(f"sweep_tasks:{function}", {"number": 5}, "point")], folder=tmp_path, workers=1)


def test_stop_keeps_what_has_arrived(tmp_path):
    stop = threading.Event()

    def progress(done, kept, total):
        if done >= 2:
            stop.set()

    with pytest.raises(WorkbenchError, match="was stopped; what had been computed is kept"):
        run_tasks(squares(range(40), sleep_s=0.05), folder=tmp_path, workers=1, progress=progress, stop=stop)
    kept = len(list(tmp_path.rglob("*.parquet")))
    assert 2 <= kept < 40


def test_bad_tasks_are_refused():
    with pytest.raises(UserError, match="not plain numbers"):
        key_of(Task("sweep_tasks:square", {"number": object()}))
    with pytest.raises(UserError, match="not plain numbers"):
        key_of(Task("sweep_tasks:square", {"number": float("nan")}))
    with pytest.raises(UserError, match="at least 1 worker"):
        run_tasks(squares([1]), workers=0, folder="/nonexistent")


def test_the_key_covers_function_and_arguments():
    one = Task("sweep_tasks:square", {"number": 1})
    assert key_of(one) == key_of(Task("sweep_tasks:square", {"number": 1}, "another label"))
    assert key_of(one) != key_of(Task("sweep_tasks:square", {"number": 2}))
    assert key_of(one) != key_of(Task("sweep_tasks:mend", {"number": 1}))


KILLED = """
import sys
sys.path.insert(0, {support!r})
from workbench.sweeps import Task, run_tasks
if __name__ == "__main__":
    tasks = [Task("sweep_tasks:square", {{"number": n, "log": {log!r}, "sleep_s": 0.1}}, str(n)) for n in range(24)]
    run_tasks(tasks, folder={folder!r}, workers=2, progress=lambda done, kept, total: print(done, flush=True))
"""


def test_a_killed_sweep_resumes_without_recomputing_what_was_kept(tmp_path):
    log, folder = tmp_path / "log", tmp_path / "kept"
    log.mkdir()
    code = textwrap.dedent(KILLED).format(support=str(SUPPORT), log=str(log), folder=str(folder))
    script = tmp_path / "sweep.py"
    script.write_text(code)
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        for line in process.stdout:
            if int(line) >= 6:
                break
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    time.sleep(0.3)
    kept = {path.parent for path in folder.rglob("*.parquet")}
    assert len(kept) >= 6
    stamps = {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}
    computed = len(list(log.iterdir()))
    finished = run_tasks(squares(range(24), log=str(log), sleep_s=0.1), folder=folder, workers=2)
    assert values(finished) == [number * number for number in range(24)]
    assert sum(result.kept for result in finished) == len(kept)
    assert len(list(log.iterdir())) - computed == 24 - len(kept)
    assert all(path.stat().st_mtime_ns == stamp for path, stamp in stamps.items())


def test_an_experiment_over_a_grid(tmp_path):
    sweep = wb.sweep(
        "lambdascale/block-count", {"nodes": [4, 8], "overhead_factor": [0.5, 1.0, 2.0]}, folder=tmp_path, workers=1
    )
    table = sweep.tables["best"].filter(pl.col("schedule") == "binomial_pipeline")
    assert table.select("nodes", "overhead_factor").rows() == [
        (4, 0.5), (4, 1.0), (4, 2.0), (8, 0.5), (8, 1.0), (8, 2.0),
    ]  # fmt: skip
    single = wb.experiment("lambdascale/block-count").run("analytic", nodes=8, overhead_factor=2.0)
    best = single.tables["best"].filter(pl.col("schedule") == "binomial_pipeline")["complete_s"][0]
    assert table["complete_s"][-1] == best
    again = wb.sweep("lambdascale/block-count", {"nodes": [4, 8]}, overhead_factor=0.5, folder=tmp_path, workers=1)
    assert again.kept == 2
    assert set(again.summary().columns) >= {"nodes", "series", "x", "mean", "low", "high"}


@pytest.mark.parametrize(
    ("grid", "fixed", "kind", "words"),
    [
        ({"nodse": [1]}, {}, UnknownName, "near names: nodes"),
        ({"nodes": [4, 1000]}, {}, UserError, "out of range, got 1000"),
        ({"nodes": []}, {}, UserError, "needs a list of values for 'nodes'"),
        ({"nodes": 4}, {}, UserError, "needs a list of values for 'nodes'"),
        ({"nodes": [4]}, {"nodes": 5}, UserError, "both in the grid and fixed"),
        ({"cluster": ["nowhere"]}, {}, UnknownName, "no cluster named 'nowhere'"),
    ],
)
def test_a_bad_grid_is_refused_before_anything_runs(tmp_path, grid, fixed, kind, words):
    with pytest.raises(kind, match=words):
        wb.sweep("lambdascale/block-count", grid, folder=tmp_path, **fixed)
    assert list(tmp_path.iterdir()) == []


def test_a_changed_profile_is_another_result(tmp_path):
    """A path can hold something else tomorrow."""
    import shutil

    from workbench.paths import facts_folder

    mine = tmp_path / "mine.toml"
    shutil.copy(facts_folder() / "clusters" / "blitzscale-a.toml", mine)
    first = wb.sweep("blitzscale/fig14", {"cluster": [str(mine)]}, folder=tmp_path / "kept", workers=1)
    mine.write_text(mine.read_text().replace("12.5e9", "25e9"))
    second = wb.sweep("blitzscale/fig14", {"cluster": [str(mine)]}, folder=tmp_path / "kept", workers=1)
    assert (first.kept, second.kept) == (0, 0)
    assert first.tables["lanes"]["complete_s"][0] != second.tables["lanes"]["complete_s"][0]
