"""Run many tasks on any `concurrent.futures` executor or a Dask cluster, keep each result, and resume.

A task names a function of this package and the arguments it is called with. Its result is a dict of polars tables. The
parent writes every result as soon as it arrives, whole or not at all, under a key that covers the function's source and
all it imports: whatever was written is not computed again, in this run or after a kill. Results stay on the disk until
they are asked for, and only a few tasks a worker are under way: a sweep's memory does not grow with its length.
"""

import errno
import functools
import hashlib
import io
import json
import math
import os
import platform
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import closing
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import polars as pl

from workbench.errors import UserError, WorkbenchError
from workbench.jit import source_key, sources
from workbench.paths import cache_folder, make_folder, room_in
from workbench.records import check_watching, given_path, shown
from workbench.results import parquet

Tables = dict[str, pl.DataFrame]
PENDING_PER_WORKER = 4
MANIFEST = "tables.json"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1")


@runtime_checkable
class Cluster(Protocol):
    """What is asked of a Dask client (`distributed.Client`)."""

    def get_executor(self, *, pure: bool) -> Executor: ...

    def nthreads(self) -> Mapping[str, int]: ...

    def run(self, function: Callable, *given: Any, workers: Sequence[str], on_error: str) -> Any: ...


class Task(NamedTuple):
    """A call to make.

    Attributes:
        function: "package.module:name" of a function that returns a dict of polars tables.
        arguments: its keyword arguments: what JSON can hold, nothing else. They hold all that the result depends on,
            but for the function's source: of what it imports by name, or reads, a hash (see `content_key`).
        label: how people call it, for progress and errors.
    """

    function: str
    arguments: Mapping[str, Any]
    label: str = ""


class Finished(NamedTuple):
    """A task's result.

    Attributes:
        place: the folder it is kept in.
        kept: True where it had been computed before.
    """

    place: Path
    kept: bool

    @property
    def names(self) -> list[str]:
        """Names of the tables that the function returned, in alphabetical order."""
        return list(_manifest(self.place))

    def table(self, name: str) -> pl.DataFrame:
        """One of the tables, read from the disk.

        Raises:
            WorkbenchError: it is gone from there, or was changed.
        """
        try:
            return pl.read_parquet(io.BytesIO(_checked(self.place, name, _manifest(self.place)[name])))
        except (OSError, ValueError):
            raise WorkbenchError(f"{self.place} lost what was kept there; run the sweep again.") from None

    @property
    def tables(self) -> Tables:
        """All that the function returned, read from the disk."""
        return {name: self.table(name) for name in self.names}


def run_tasks(
    tasks: Sequence[Task],
    *,
    executor: Executor | Cluster | None = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    progress: Callable[[int, int, int], object] | None = None,
    stop: threading.Event | None = None,
) -> list[Finished]:
    """Run tasks, or find what was computed before; results come in the order of the tasks.

    Parameters:
        tasks: what to do.
        executor: a Dask client, or any `concurrent.futures` executor; by default worker processes started for this
            call (loky). Where a cluster loses a worker, it gives the tasks of that worker to another.
        workers: number of those processes, or of an executor's; by default one a core, or one a task if there are
            fewer. A client knows its own, while they come and go.
        folder: where results are kept, on this machine; by default in the cache folder.
        progress: called with (done, of them kept from before, in all).
        stop: ends the run between tasks; what has arrived is kept.

    Raises:
        UserError: results cannot be kept in that folder, or no more of them; an executor or a client that is closed.
            WorkbenchError: a task failed (its label is named), or the run was stopped; all that arrived is kept.
    """
    if workers is not None and (not isinstance(workers, int) or isinstance(workers, bool) or workers < 1):
        raise UserError(f"A sweep needs a whole number of at least 1 worker, got {shown(workers)}.")
    if executor is not None and not isinstance(executor, Executor | Cluster):
        raise UserError(
            f"A sweep takes a concurrent.futures executor or a Dask client, got a {type(executor).__name__}."
        )
    check_watching(progress, stop)
    store = make_folder(given_path(folder, "folder") if folder is not None else cache_folder() / "sweeps")
    places = [_place(store, key_of(task)) for task in tasks]
    found = {index: Finished(place, True) for index, place in enumerate(places) if _is_whole(place)}
    kept = len(found)
    if progress is not None:
        progress(kept, kept, len(tasks))
    todo = [index for index in range(len(tasks)) if index not in found]
    failure: WorkbenchError | None = None
    # closed at once, whatever ends the run: workers must not go on while an error or an interrupt is looked at
    with closing(_compute(tasks, todo, executor, workers, stop)) as arriving:
        for index, parts in arriving:
            if isinstance(parts, WorkbenchError):
                failure = failure or parts
                continue
            _write(places[index], parts)
            found[index] = Finished(places[index], False)
            if progress is not None:
                progress(len(found), kept, len(tasks))
    if failure is not None:
        raise failure
    return [found[index] for index in range(len(tasks))]


def key_of(task: Task) -> str:
    """Hash of what a result depends on: function, its source with all it imports, and arguments (hex)."""
    module = import_module(task.function.partition(":")[0])
    try:
        arguments = json.dumps(task.arguments, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        raise UserError(
            f"Task {task.label or task.function!r} has arguments that are not plain numbers, texts and lists; "
            "give names or paths instead of records made in code."
        ) from None
    text = "\n".join((task.function, source_key(module.__file__), arguments, _versions()))
    return hashlib.sha256(text.encode()).hexdigest()


def content_key(module: str) -> str:
    """Hash of a module's source, of all it imports and of the packages it runs on; equal on machines that agree (hex).

    Unlike the key of compiled code it does not tell where they are installed.
    """
    found = sources(import_module(module).__file__)
    contents = sorted((path.name, digest.hex()) for path, digest in found.items())
    return hashlib.sha256(f"{contents}{_versions()}".encode()).hexdigest()


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
    return {label: parquet(table) for label, table in tables.items()}


def _compute(
    tasks: Sequence[Task],
    todo: Sequence[int],
    executor: Executor | Cluster | None,
    workers: int | None,
    stop: threading.Event | None,
) -> Iterator[tuple[int, dict[str, bytes] | WorkbenchError]]:
    """Results as they arrive; after a failure whatever has arrived, and nothing new is started."""
    if not todo:
        return
    count = min(len(todo), workers or os.cpu_count() or 1)
    own = members = None
    if isinstance(executor, Cluster):
        members, executor = _Members(executor), executor.get_executor(pure=False)  # pure: a failure is remembered
    elif executor is None:
        from loky import ProcessPoolExecutor

        executor = own = ProcessPoolExecutor(max_workers=count, env=ONE_THREAD)
    waiting: list[int] = list(reversed(todo))
    pending: dict[Future, int] = {}
    failed = False
    try:
        while waiting or pending:
            count = members.threads() if members is not None else count
            while waiting and len(pending) < PENDING_PER_WORKER * count:
                index = waiting.pop()
                try:
                    future = executor.submit(call, tasks[index].function, dict(tasks[index].arguments))
                except BrokenExecutor as error:
                    yield index, _lost(tasks[index], error)
                    return
                except RuntimeError as error:
                    why = f"{tasks[index].label}: the executor takes no more tasks ({error}); give one that is open."
                    yield index, UserError(why)
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


class _Members:
    """The workers of a cluster, which come and go."""

    def __init__(self, client: Cluster):
        self._client, self._known, self._threads, self._asked_s = client, set(), 1, -math.inf

    def threads(self) -> int:
        """How many tasks can run at once, as of the last second; at least 1."""
        if time.monotonic() - self._asked_s >= 1.0:
            threads, self._asked_s = self._asked(), time.monotonic()
            self._threads = max(1, sum(threads.values()))
            if new := sorted(set(threads) - self._known):
                here = (platform.node(), os.getpid(), _process_group())
                self._client.run(_stay, *here, workers=new, on_error="ignore")
                self._known.update(new)
        return self._threads

    def _asked(self) -> Mapping[str, int]:
        """Threads by worker.

        Raises:
            UserError: the client was closed, or its scheduler is gone.
        """
        try:
            return self._client.nthreads()
        except Exception as error:  # which one depends on what the client was doing when it was cut off
            status = getattr(self._client, "status", "")
            why = f"its client is {status}" if status else type(error).__name__
            raise UserError(
                f"The Dask cluster cannot be asked ({why}); connect a new client. What had been computed is kept."
            ) from None


def _process_group() -> int | None:
    return os.getpgrp() if hasattr(os, "getpgrp") else None


def _stay(node: str, process: int, group: int | None) -> None:
    """On a worker: one that belongs to the process group of the sweep is not ended by an interrupt of a notebook.

    Jupyter interrupts the whole group, and a local cluster would not start its workers again after that.
    """
    if group is not None and (platform.node(), _process_group()) == (node, group) and os.getpid() != process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


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


def _write(place: Path, parts: Mapping[str, bytes]) -> None:
    """Keep a result as a folder of Parquet files, which appears whole or not at all."""
    with room_in(place.parent.parent):
        place.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{place.name[:8]}.", dir=place.parent))
        try:
            for name, data in parts.items():
                (beside / f"{name}.parquet").write_bytes(data)
            sums = {name: hashlib.sha256(parts[name]).hexdigest() for name in sorted(parts)}
            (beside / MANIFEST).write_text(json.dumps(sums), encoding="utf-8")
            beside.chmod(0o755)
            try:
                beside.rename(place)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # another run kept the same result first
                    raise
        finally:
            shutil.rmtree(beside, ignore_errors=True)


def _is_whole(place: Path) -> bool:
    """Whether a result is kept here; one that cannot be read is taken away, and then computed again."""
    if not place.is_dir():
        return False
    try:
        for name, total in _manifest(place).items():
            _checked(place, name, total)
        return True
    except (OSError, ValueError):
        shutil.rmtree(place, ignore_errors=True)
        return False


def _manifest(place: Path) -> dict[str, str]:
    """The hash of each table's file."""
    sums = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
    if not isinstance(sums, dict):
        raise ValueError(MANIFEST)
    return sums


def _checked(place: Path, name: str, total: str) -> bytes:
    data = (place / f"{name}.parquet").read_bytes()
    if hashlib.sha256(data).hexdigest() != total:  # Parquet itself does not notice a changed number
        raise ValueError(name)
    return data


def _place(store: Path, key: str) -> Path:
    return store / key[:2] / key[2:]
