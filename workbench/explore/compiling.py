"""What compiling goes on while something runs, in words: it happens once, and takes longer than what is computed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType

from numba.core import event
from numba.core.registry import CPUDispatcher


@contextmanager
def compiling(tell: Callable[[str], object]) -> Iterator[None]:
    """Say how far numba is whenever it compiles inside, as "compiling, once (3 of 9)".

    Counted are functions: a kernel that is compiled brings along all that it calls and that is not compiled yet. Each
    kernel that turns out to be needed adds its own.
    """
    listener = _Count(tell)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


class _Count(event.Listener):
    """Compilations that have begun and ended; they nest, and the outer one ends last."""

    def __init__(self, tell: Callable[[str], object]):
        self.tell, self.lock, self.said = tell, threading.Lock(), ""
        self.depth = self.done = self.total = 0

    def on_start(self, event) -> None:
        with self.lock:
            if self.depth == 0:
                self.total = self.done + len(_to_compile(event.data["dispatcher"]))
            self.depth += 1
            self._say()

    def on_end(self, event) -> None:
        with self.lock:
            self.depth -= 1
            self.done = min(self.done + 1, self.total)
            if self.depth:
                self._say()

    def _say(self) -> None:
        text = f"compiling, once ({min(self.done + 1, self.total)} of {self.total})"
        if text != self.said:
            self.said = text
            self.tell(text)


def _to_compile(dispatcher: CPUDispatcher) -> set[CPUDispatcher]:
    """A kernel and all that it calls, as far as these have no machine code in this process."""
    found, waiting = set(), [dispatcher]
    while waiting:
        one = waiting.pop()
        if one not in found and not one.overloads:
            found.add(one)
            names, scope = _names(one.py_func.__code__), one.py_func.__globals__
            waiting += [value for name in names if isinstance(value := scope.get(name), CPUDispatcher)]
    return found


def _names(code: CodeType) -> set[str]:
    """Global names in a function and in those inside it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))
