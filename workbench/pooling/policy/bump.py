"""Weights in one buffer: allocation moves a pointer, and a switch of models sets it back."""

from workbench.errors import InputError, UserError
from workbench.records import whole

ALIGNMENT_BYTES = 16


class BumpAllocator:
    """Places in one buffer, handed out one behind the other; nothing is freed alone, so nothing is to be collected.

    >>> buffer = BumpAllocator(64)
    >>> buffer.allocate(10), buffer.allocate(10)
    (0, 16)
    >>> mark = buffer.mark()
    >>> buffer.allocate(20)
    32
    >>> buffer.back_to(mark)
    >>> buffer.allocate(1)
    32

    Source: Aegaeon (SOSP'25) §5.2 and its artifact, allocator.py (aligned to 16 bytes).
    """

    def __init__(self, size_bytes: int, alignment_bytes: int = ALIGNMENT_BYTES):
        self.size_bytes = whole(size_bytes, "size_bytes", 1)
        self.alignment_bytes = whole(alignment_bytes, "alignment_bytes", 1)
        self.used_bytes = 0

    def allocate(self, size_bytes: int) -> int:
        """The offset of so many bytes.

        Raises:
            UserError: the buffer is full.
        """
        begin = -(-self.used_bytes // self.alignment_bytes) * self.alignment_bytes
        end = begin + whole(size_bytes, "size_bytes")
        if end > self.size_bytes:
            raise UserError(
                f"The buffer of {self.size_bytes:,} bytes has no room for {size_bytes:,} more behind {begin:,}; "
                "make it larger, or reset it first."
            )
        self.used_bytes = end
        return begin

    def mark(self) -> int:
        """Where the pointer is, for `back_to`: what is allocated in between is scratch."""
        return self.used_bytes

    def back_to(self, mark: int) -> None:
        """Drop all that was allocated since a mark."""
        if not 0 <= mark <= self.used_bytes:
            raise InputError(f"is {mark}, not within 0 to {self.used_bytes}", "give what mark() returned", field="mark")
        self.used_bytes = mark

    def reset(self) -> None:
        """Drop everything, in no time."""
        self.used_bytes = 0
