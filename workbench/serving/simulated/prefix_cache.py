"""The prefix cache of one instance: hash blocks of prompts whose KV is kept, in a memory of its own."""

from collections.abc import Sequence


class PrefixCache:
    """Ids of hash blocks by time of last use; beyond the capacity, the one last used longest ago goes."""

    def __init__(self, capacity: int, tokens_each: int):
        self.capacity, self.tokens_each = capacity, tokens_each
        self.ids: dict[int, None] = {}  # the one last used longest ago first

    def hit(self, prefix: Sequence[int]) -> int:
        """How many tokens of a prompt are there: its leading ids, which are used by this, the first one last."""
        count = next((k for k, one in enumerate(prefix) if one not in self.ids), len(prefix))
        self._use(prefix[:count])
        return count * self.tokens_each

    def keep(self, prefix: Sequence[int]) -> None:
        """A prompt has been processed: its ids are there, as many of the leading ones as there is room for."""
        self._use(prefix[: self.capacity])
        while len(self.ids) > self.capacity:
            del self.ids[next(iter(self.ids))]

    def clear(self) -> None:
        """Nothing is there any more."""
        self.ids.clear()

    def _use(self, prefix: Sequence[int]) -> None:
        for one in reversed(prefix):
            self.ids.pop(one, None)
            self.ids[one] = None
