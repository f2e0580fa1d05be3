"""Which blocks a node holds, and since when: what its sending thread waits for."""

import threading


class Broken(Exception):
    """The run was called off, or a link has failed."""


class Held:
    """Blocks held by one node, shared by its receiving and its sending thread.

    Attributes:
        reason: why the run was broken off, "" while it goes on.
    """

    def __init__(self) -> None:
        self._since: dict[int, float] = {}
        self._changed = threading.Condition()
        self.reason = ""

    def add(self, block: int, since_s: float) -> None:
        """A block is complete; `since_s` is on `time.monotonic`."""
        with self._changed:
            self._since[block] = since_s
            self._changed.notify_all()

    def wait(self, block: int) -> float:
        """Wait until a block is held and return since when; raises `Broken`."""
        with self._changed:
            self._changed.wait_for(lambda: block in self._since or self.reason)
            self.check()
            return self._since[block]

    def break_off(self, reason: str) -> bool:
        """Wake whoever waits; the first reason stays, and True says that this was the first."""
        with self._changed:
            first = not self.reason
            self.reason = self.reason or reason
            self._changed.notify_all()
        return first

    def check(self) -> None:
        """Raise `Broken` when the run was broken off."""
        if self.reason:
            raise Broken(self.reason)

    def blocks(self) -> list[int]:
        """The blocks that are held now, in order."""
        with self._changed:
            return sorted(self._since)
