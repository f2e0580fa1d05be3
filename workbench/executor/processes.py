"""A pool of worker processes on this machine, reusable between runs, that leaves nothing behind."""

import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from workbench.errors import UserError
from workbench.executor.desk import CallOff, Reply, Task, Word, serve
from workbench.executor.faults import RunFailed
from workbench.executor.needs import require_torch
from workbench.records import whole

START_S = 60.0
LARGEST_POOL = 64
PRELOADED = ["torch", "torch.distributed", "workbench.executor.relay", "workbench.executor.transformer_serving.node"]
"""What the fork server imports once, so that every worker forked from it starts with torch loaded."""

_starting = threading.Lock()


class Worker:
    """One process of a pool, held by its handle; every signal goes through the handle, never to a bare number.

    Attributes:
        number: its place in the pool.
        busy: whether a task is running in it.
    """

    def __init__(self, context, number: int, beats):
        self.number, self.busy = number, False
        self.connection, theirs = context.Pipe()
        arguments = (number, theirs, beats)
        self.process = context.Process(target=serve, args=arguments, name=f"workbench-worker-{number}", daemon=True)
        with _as_workers_should_find_it():
            self.process.start()
        theirs.close()

    def give(self, function: Callable[..., Any], *arguments) -> None:
        """Start `function(desk, *arguments)` in the worker."""
        self.busy = True
        self._send(Task(function, arguments))

    def tell(self, value: Any) -> None:
        """Send a value to the running task."""
        self._send(Word(value))

    def call_off(self, reason: str) -> None:
        """Ask the running task to give up and hand in what it has."""
        self._send(CallOff(reason))

    def stop(self) -> None:
        """Stop the process where it stands, as a hung machine would (SIGSTOP)."""
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGSTOP)

    def kill(self) -> None:
        """End the process at once; a stopped one too."""
        self.process.kill()

    def end(self) -> None:
        """End the process and free what belongs to it."""
        self.connection.close()
        self.process.kill()
        self.process.join()
        self.process.close()

    def _send(self, message: Any) -> None:
        with suppress(OSError):  # a dead worker is found by its sentinel, not by whoever happens to talk to it
            self.connection.send(message)


class Pool:
    """Worker processes with torch loaded, one thread each.

    Workers are forked from a fork server that has imported torch once (about 1 s, then 0.05 s a pool), or spawned where
    there is no fork server; the plain fork start method is never used. They import `workbench` modules only: the user's
    script or notebook is not run again in them, so no `if __name__ == "__main__"` is needed. They are daemons, end when
    the pool is closed, and also when the parent disappears.

    Python has one fork server a process: `set_forkserver_preload` applies to the whole program, and where the program
    has started the server itself before the first pool, workers import torch each for themselves, which takes longer.

    Parameters:
        size: number of workers.
        fresh: start every worker as a new interpreter that imports all it needs, as an engine is started; else the fork
            server has torch already.

    Errors: `MissingExtra` without torch; `InputError` for an impossible size.
    """

    def __init__(self, size: int, *, fresh: bool = False):
        require_torch("A real run")
        self.size = whole(size, "size", 1, LARGEST_POOL)
        forks = not fresh and "forkserver" in multiprocessing.get_all_start_methods()
        method = "forkserver" if forks else "spawn"
        self._context = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload(PRELOADED)
        self.beats = self._context.RawArray("d", size)
        self._workers: list[Worker] = []
        self._lease = threading.Lock()

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @contextmanager
    def lease(self, count: int) -> Iterator[list[Worker]]:
        """Have `count` idle workers to oneself; those lost since the last run are replaced.

        A worker that is still busy at the end (the run failed or was interrupted) is ended, so that the next run finds
        a clean pool.

        Errors: `UserError` for more workers than the pool has; `RunFailed` when one does not start.
        """
        if count > self.size:
            raise UserError(f"This pool has {self.size} processes and the run needs {count}; open a larger pool.")
        with self._lease:
            try:
                self._fill(count)
                yield self._workers[:count]
            finally:
                for worker in [worker for worker in self._workers if worker.busy or not worker.process.is_alive()]:
                    self._workers.remove(worker)
                    worker.end()

    def close(self) -> None:
        """End all workers; the pool can be used again afterwards and then starts new ones."""
        with self._lease:
            while self._workers:
                self._workers.pop().end()

    def pids(self) -> list[int]:
        """Process numbers of the workers that are there now."""
        return [worker.process.pid for worker in self._workers]

    def _fill(self, count: int) -> None:
        present = {worker.number for worker in self._workers}
        started = [Worker(self._context, number, self.beats) for number in range(count) if number not in present]
        for worker in started:
            worker.busy = True
        self._workers = sorted([*self._workers, *started], key=lambda worker: worker.number)
        deadline = time.monotonic() + START_S
        for worker in started:
            _await_ready(worker, deadline)


def _await_ready(worker: Worker, deadline: float) -> None:
    try:
        if worker.connection.poll(max(0.0, deadline - time.monotonic())):
            reply: Reply = worker.connection.recv()
            worker.busy = reply.kind != "ready"
            return
    except (EOFError, OSError):
        pass
    raise RunFailed(f"Worker process {worker.number} did not start within {START_S:.0f} s; is `import torch` working?")


@contextmanager
def _as_workers_should_find_it() -> Iterator[None]:
    """The program as a worker is to find it, for the moment of a start, with a lock round it.

    Two things are changed for the whole program and put back at once. `sys.modules["__main__"]` is an empty module, or
    the child would run the user's script again from its top; another thread that looks for `__main__` in that moment
    (to unpickle, say) does not find its names. And `OMP_NUM_THREADS` is 1 for a fork server that is started now, since
    OpenMP reads it when it is loaded: equal thread counts are what makes outputs comparable bit for bit.
    """
    with _starting:
        main, threads = sys.modules["__main__"], os.environ.get("OMP_NUM_THREADS")
        sys.modules["__main__"], os.environ["OMP_NUM_THREADS"] = types.ModuleType("__main__"), "1"
        try:
            yield
        finally:
            sys.modules["__main__"] = main
            os.environ.pop("OMP_NUM_THREADS")
            if threads is not None:
                os.environ["OMP_NUM_THREADS"] = threads
