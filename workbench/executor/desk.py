"""The inside of a worker process: a loop that runs tasks, and the desk at which a task meets its parent."""

import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

BEAT_S = 0.05
"""How often a worker stamps its sign of life."""


class Task(NamedTuple):
    """Order to a worker: call `function(desk, *arguments)`; the function lives in an importable module."""

    function: Callable[..., Any]
    arguments: tuple


class Word(NamedTuple):
    """A value for the running task of a worker."""

    value: Any


class CallOff(NamedTuple):
    """Order to a worker: give up the running task, and hand in what there is."""

    reason: str


class Reply(NamedTuple):
    """What a worker tells its parent: kind is "ready", "said", "done" or "failed"."""

    kind: str
    value: Any


class CalledOff(Exception):
    """Raised inside a task whose parent has called it off."""


class Desk:
    """What a task sees of its worker and its parent.

    Attributes:
        number: the worker's place in its pool.
        import_s: seconds that the worker needed to import torch; next to nothing where its fork server had it.
        kept: whatever a task leaves for the next one in the same worker (buffers, open connections).
    """

    def __init__(self, number: int, connection: Connection, import_s: float = 0.0):
        self.number, self.import_s = number, import_s
        self.kept: dict[str, Any] = {}
        self._connection, self._sending = connection, threading.Lock()
        self._inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._on_call_off: Callable[[str], None] | None = None
        self._on_word: Callable[[Any], None] | None = None

    def say(self, value: Any) -> None:
        """Tell the parent something while the task goes on."""
        self._reply("said", value)

    def hear(self) -> Any:
        """The parent's next word to this task; raises `CalledOff` when the task is to be given up."""
        message = self._inbox.get()
        if isinstance(message, CallOff):
            raise CalledOff(message.reason)
        return message.value

    def on_call_off(self, callback: Callable[[str], None]) -> None:
        """Call this from another thread, with the reason, when the parent calls the task off."""
        self._on_call_off = callback

    def on_word(self, callback: Callable[[Any], None]) -> None:
        """Hand the parent's words to this from another thread, as they come, instead of to `hear`."""
        self._on_word = callback

    def _reply(self, kind: str, value: Any) -> None:
        with self._sending:
            self._connection.send(Reply(kind, value))

    def _listen(self, beats) -> None:
        """Stamp signs of life and take the parent's messages; a parent that is gone takes its workers with it."""
        while True:
            beats[self.number] = time.monotonic()
            try:
                if not self._connection.poll(BEAT_S):
                    continue
                message = self._connection.recv()
            except (EOFError, OSError):
                os._exit(0)
            if isinstance(message, Word) and (on_word := self._on_word) is not None:
                on_word(message.value)
                continue
            self._inbox.put(message)
            if isinstance(message, CallOff) and self._on_call_off is not None:
                self._on_call_off(message.reason)

    def _work(self) -> None:
        while True:
            if not isinstance(task := self._inbox.get(), Task):
                continue  # a word that came after its task had ended
            try:
                reply = "done", task.function(self, *task.arguments)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                reply = "failed", f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
            self._on_call_off = self._on_word = None
            self._reply(*reply)


def serve(number: int, connection: Connection, beats) -> None:
    """Main function of a worker process; it ends when its parent closes the pipe.

    Parameters:
        number: the worker's place in its pool.
        connection: the worker's end of a two-way pipe.
        beats: shared array of doubles, one a worker, for signs of life.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to handle; it closes the pipe
    os.environ["OMP_NUM_THREADS"] = "1"
    begun_s = time.monotonic()
    import torch

    desk = Desk(number, connection, time.monotonic() - begun_s)
    torch.set_num_threads(1)
    threading.Thread(target=desk._listen, args=(beats,), daemon=True).start()
    desk._reply("ready", os.getpid())
    desk._work()
