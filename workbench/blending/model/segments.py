"""Shared prompt segments of an engine: who uses each, and which lie idle since when."""

from collections import Counter, OrderedDict


class Prefixes:
    """Segments in the KV pool.

    Attributes:
        held: tokens of all segments in the pool. idle: node -> its tokens, the one that is idle longest first.
    """

    def __init__(self, parent: list[int], tokens: list[int]):
        self._parent, self._tokens = parent, tokens
        self._users: Counter[int] = Counter()
        self.there: set[int] = set()
        self.idle: OrderedDict[int, int] = OrderedDict()
        self.held = 0

    def _path(self, node: int) -> list[int]:
        path = []
        while node > 0:
            path.append(node)
            node = self._parent[node]
        return path

    @property
    def used(self) -> int:
        """Tokens of segments that somebody uses."""
        return self.held - sum(self.idle.values())

    def missing(self, node: int) -> int:
        """Tokens from the root down to a node that would have to be computed."""
        return sum(self._tokens[one] for one in self._path(node) if one not in self.there)

    def unused(self, node: int) -> int:
        """Tokens from the root down to a node that nobody uses."""
        return sum(self._tokens[one] for one in self._path(node) if not self._users[one])

    def use(self, node: int) -> None:
        """Use every segment down to a node."""
        for one in self._path(node):
            if one not in self.there:
                self.there.add(one)
                self.held += self._tokens[one]
            self.idle.pop(one, None)
            self._users[one] += 1

    def leave(self, node: int) -> None:
        """Use them no more."""
        for one in self._path(node):
            self._users[one] -= 1
            if not self._users[one]:
                self.idle[one] = self._tokens[one]

    def drop(self) -> int:
        """Drop the segment that is idle longest; returns it."""
        one, tokens = self.idle.popitem(last=False)
        self.there.remove(one)
        self.held -= tokens
        return one
