"""Run many tasks on any `concurrent.futures` executor, keep each result under a hash of what made it, and resume.

A task names a function of this package and the arguments it is called with. Its result is a dict of polars tables. The
parent writes every result as soon as it arrives, whole or not at all, under a key that covers the function's source and
all it imports: whatever was written is not computed again, in this run or after a kill.
"""

import errno
import functools
import hashlib
import io
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from workbench.errors import UserError, WorkbenchError
from workbench.jit import source_key
from workbench.paths import cache_folder, make_folder
from workbench.records import shown

Tables = dict[str, pl.DataFrame]
PENDING_PER_WORKER = 4
MANIFEST = "tables.json"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")


class Task(NamedTuple):
    """A call to make.

    Attributes:
        function: "package.module:name" of a function that returns a dict of polars tables.
        arguments: its keyword arguments: what JSON can hold, nothing else.
        label: how people call it, for progress and errors.
        salt: whatever else the result depends on (sources that are imported by name, facts), as text.
    """

    function: str
    arguments: Mapping[str, Any]
    label: str = ""
    salt: str = ""


class Finished(NamedTuple):
    """A task's result.

    Attributes:
        tables: what the function returned.
        kept: True where it had been computed before and was read.
    """

    tables: Tables
    kept: bool


def run_tasks(
    tasks: Sequence[Task],
    *,
    executor: Executor | None = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    progress: Callable[[int, int, int], object] | None = None,
    stop: threading.Event | None = None,
) -> list[Finished]:
    """Run tasks, or read what was computed before; results come in the order of the tasks.

    Parameters:
        tasks: what to do.
        executor: any `concurrent.futures` executor; by default worker processes started for this call (loky).
        workers: number of those processes; by default one a core, or one a task if there are fewer.
        folder: where results are kept; by default in the cache folder.
        progress: called with (done, of them read, in all).
        stop: ends the run between tasks; what has arrived is kept.

    Raises:
        UserError: results cannot be kept in that folder. WorkbenchError: a task failed (its label is named), or the run
            was stopped; all that arrived is kept.
    """
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise UserError(f"A sweep needs a whole number of at least 1 worker, got {shown(workers)}.")
    if executor is not None and not isinstance(executor, Executor):
        raise UserError(f"A sweep takes a concurrent.futures executor, got a {type(executor).__name__}.")
    store = make_folder(Path(folder) if folder is not None else cache_folder() / "sweeps")
    keys = [key_of(task) for task in tasks]
    found: dict[int, Finished] = {}
    for index, key in enumerate(keys):
        if (tables := _read(store, key)) is not None:
            found[index] = Finished(tables, True)
    kept = len(found)
    if progress is not None:
        progress(len(found), kept, len(tasks))
    todo = [index for index in range(len(tasks)) if index not in found]
    if todo:
        failure: WorkbenchError | None = None
        for index, parts in _compute(tasks, todo, executor, workers, stop):
            if isinstance(parts, WorkbenchError):
                failure = failure or parts
                continue
            _write(store, keys[index], parts)
            found[index] = Finished({name: _table(parts[name]) for name in sorted(parts)}, False)
            if progress is not None:
                progress(len(found), kept, len(tasks))
        if failure is not None:
            raise failure
    return [found[index] for index in range(len(tasks))]


def key_of(task: Task) -> str:
    """Hash of what a result depends on: function, its source with all it imports, arguments and salt (hex)."""
    module = import_module(task.function.partition(":")[0])
    try:
        arguments = json.dumps(task.arguments, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise UserError(
            f"Task {task.label or task.function!r} has arguments that are not plain numbers, texts and lists; "
            "give names or paths instead of records made in code."
        ) from None
    text = "\n".join((task.function, source_key(module.__file__), arguments, task.salt, _versions()))
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _versions() -> str:
    return json.dumps({name: version(name) for name in ("numpy", "scipy", "polars", "simpy", "numba")})


class Failure(NamedTuple):
    """Why a call failed, as data: our errors carry facts that do not survive the way between processes."""

    mendable: bool
    reason: str


def call(function: str, arguments: Mapping[str, Any]) -> dict[str, bytes] | Failure:
    """Make one call in a worker; the tables come back as Parquet, so that any executor can carry them."""
    module, name = function.split(":")
    try:
        tables = getattr(import_module(module), name)(**arguments)
    except WorkbenchError as error:
        return Failure(isinstance(error, UserError), str(error))
    except Exception as error:
        return Failure(False, f"{type(error).__name__}: {error}")
    parts = {}
    for label, table in tables.items():
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        parts[label] = buffer.getvalue()
    return parts


def _compute(
    tasks: Sequence[Task],
    todo: Sequence[int],
    executor: Executor | None,
    workers: int | None,
    stop: threading.Event | None,
) -> Iterator[tuple[int, dict[str, bytes] | WorkbenchError]]:
    """Results as they arrive; after a failure whatever has arrived, and nothing new is started."""
    count = min(len(todo), workers or os.cpu_count() or 1)
    own = None
    if executor is None:
        from loky import ProcessPoolExecutor

        executor = own = ProcessPoolExecutor(max_workers=count, env=ONE_THREAD)
    waiting: list[int] = list(reversed(todo))
    pending: dict[Future, int] = {}
    failed = False
    try:
        while waiting or pending:
            while waiting and len(pending) < PENDING_PER_WORKER * count:
                index = waiting.pop()
                try:
                    future = executor.submit(call, tasks[index].function, dict(tasks[index].arguments))
                except RuntimeError as error:  # a pool that is shut down or broken takes nothing any more
                    yield index, _lost(tasks[index], error)
                    return
                pending[future] = index
            done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=pending.__getitem__):
                index = pending.pop(future)
                parts = _result(future, tasks[index])
                failed = failed or isinstance(parts, WorkbenchError)
                yield index, parts
            if failed:
                break
            if stop is not None and stop.is_set():
                raise WorkbenchError("The sweep was stopped; what had been computed is kept.")
    finally:
        for future in pending:
            future.cancel()
        if own is not None:
            own.shutdown(wait=True, kill_workers=bool(pending))


def _result(future: Future, task: Task) -> dict[str, bytes] | WorkbenchError:
    try:
        result = future.result()
    except Exception as error:  # the worker itself was lost
        return _lost(task, error)
    if isinstance(result, Failure):
        return (UserError if result.mendable else WorkbenchError)(f"{task.label}: {result.reason}")
    return result


def _lost(task: Task, error: Exception) -> WorkbenchError:
    return WorkbenchError(f"{task.label}: the worker was lost ({type(error).__name__}); run it again.")


def _write(store: Path, key: str, parts: Mapping[str, bytes]) -> None:
    """Keep a result as a folder of Parquet files, which appears whole or not at all."""
    place = _place(store, key)
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{place.name[:8]}.", dir=place.parent))
    try:
        for name, data in parts.items():
            (beside / f"{name}.parquet").write_bytes(data)
        sums = {name: hashlib.sha256(parts[name]).hexdigest() for name in sorted(parts)}
        (beside / MANIFEST).write_text(json.dumps(sums))
        beside.chmod(0o755)
        try:
            beside.rename(place)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another run kept the same result first
                raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _read(store: Path, key: str) -> Tables | None:
    """A kept result, or None where there is none or it cannot be read (it is then computed again)."""
    place = _place(store, key)
    if not place.is_dir():
        return None
    try:
        tables = {}
        for name, total in json.loads((place / MANIFEST).read_text()).items():
            data = (place / f"{name}.parquet").read_bytes()
            if hashlib.sha256(data).hexdigest() != total:  # Parquet itself does not notice a changed number
                raise ValueError(name)
            tables[name] = _table(data)
        return tables
    except (OSError, ValueError, AttributeError, pl.exceptions.PolarsError):
        shutil.rmtree(place, ignore_errors=True)
        return None


def _place(store: Path, key: str) -> Path:
    return store / key[:2] / key[2:]


def _table(data: bytes) -> pl.DataFrame:
    return pl.read_parquet(io.BytesIO(data))
