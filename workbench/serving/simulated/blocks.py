"""The KV memory of one instance, in blocks of equal size."""


class Blocks:
    """Free blocks, and the most that were ever in use at one moment."""

    def __init__(self, total: int, tokens_each: int):
        self.total, self.tokens_each = total, tokens_each
        self.free, self.peak = total, 0

    @property
    def in_use(self) -> int:
        return self.total - self.free

    def holding(self, tokens: int) -> int:
        """How many blocks hold so many tokens."""
        return -(-tokens // self.tokens_each)

    def give(self, request, count: int) -> None:
        """Give a request `count` more blocks; the caller has seen that so many are free."""
        self.free -= count
        request.room += count * self.tokens_each
        self.peak = max(self.peak, self.in_use)

    def detach(self, request) -> int:
        """The blocks of a request stay in use, but are its own no more; returns how many."""
        count, request.room = request.room // self.tokens_each, 0
        return count

    def take_back(self, request) -> None:
        """All blocks of a request are free again."""
        self.free += request.room // self.tokens_each
        request.room = 0
