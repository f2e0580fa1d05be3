"""Ctrl-C, however it arrives."""

import _thread
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

AGAIN_S = 0.1


@contextmanager
def heard() -> Iterator[None]:
    """Let Ctrl-C end a command also where Python would print it and go on: LLVM calls back while it compiles."""
    earlier = sys.unraisablehook

    def hear(told: Any) -> None:
        if not isinstance(told.exc_value, KeyboardInterrupt):
            earlier(told)
            return
        again = threading.Timer(AGAIN_S, _thread.interrupt_main)  # by then the call back is over, or told once more
        again.daemon = True
        again.start()
        hear.pressed = True

    hear.pressed = False
    sys.unraisablehook = hear
    try:
        yield
    finally:
        sys.unraisablehook = earlier


def was_stopped(error: BaseException | None) -> bool:
    """Whether an error is Ctrl-C, or comes of it.

    Pressed while a compiled kernel runs, it arrives as the cause of a SystemError; while one is compiled, numba finds
    its code unfinished.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return getattr(sys.unraisablehook, "pressed", False)
