"""A KV cache for models of different shapes in one region: slabs of fixed size, each cut into blocks of one shape.

A block never straddles two slabs, so an empty slab can be given to another shape. Blocks that a transfer still reads
wait on a move list and are free when it is done.
"""

from collections import deque
from dataclasses import dataclass, field

from workbench.errors import InputError
from workbench.records import whole


@dataclass
class _Shape:
    block_bytes: int
    free: deque[int] = field(default_factory=deque)
    moving: deque[tuple[int, list[int]]] = field(default_factory=deque)
    slabs: int = 0
    used: int = 0


class SlabPool:
    """Slabs, and the blocks that are handed out of them.

    Attributes:
        slab_bytes, slabs: size of a slab, and how many there are.

    >>> pool = SlabPool(slab_bytes=10, slabs=3)
    >>> pool.allocate(3, 3), pool.allocate(4, 2)
    ([7, 8, 9], [3, 4])
    >>> pool.allocate(10, 2) is None
    True

    Source: Aegaeon (SOSP'25) §5.2 and its artifact, block_manager.py.
    """

    def __init__(self, slab_bytes: int, slabs: int):
        self.slab_bytes, self.slabs = whole(slab_bytes, "slab_bytes", 1), whole(slabs, "slabs", 1)
        self._free = list(range(slabs))
        self._owner = [0] * slabs
        self._used = [0] * slabs
        self._shapes: dict[int, _Shape] = {}

    def allocate(self, block_bytes: int, count: int) -> list[int] | None:
        """Numbers of `count` blocks of this size, or None where there are not so many.

        Free blocks of the shape come first, in the order in which they were freed; then new slabs, the last one first;
        then what is on the shape's move list and done is taken back. Block k of a shape lies at k x block_bytes.
        """
        shape = self._shape(block_bytes)
        if not self._enough(shape, count):
            self.reclaim()
            if not self._enough(shape, count):
                return None
        while len(shape.free) < count:
            self._open(shape)
        blocks = [shape.free.popleft() for _ in range(count)]
        for block in blocks:
            self._used[self.slab_of(block_bytes, block)] += 1
        shape.used += count
        return blocks

    def free(self, block_bytes: int, blocks: list[int]) -> None:
        """Give blocks back; the shape keeps their slabs until `reclaim`."""
        shape = self._shape(block_bytes)
        for block in blocks:
            slab = self.slab_of(block_bytes, block)
            if self._owner[slab] != block_bytes or self._used[slab] < 1:
                raise InputError(
                    f"holds block {block}, which is not in use", "free what was handed out", field="blocks"
                )
            self._used[slab] -= 1
            shape.free.append(block)
        shape.used -= len(blocks)

    def move(self, block_bytes: int, blocks: list[int], transfer: int) -> None:
        """Put blocks on the move list: they are free when transfer number `transfer` is done."""
        self._shape(block_bytes).moving.append((transfer, list(blocks)))

    def done(self, transfer: int) -> None:
        """All transfers up to this number are done; their blocks are free."""
        for size, shape in self._shapes.items():
            while shape.moving and shape.moving[0][0] <= transfer:
                self.free(size, shape.moving.popleft()[1])

    def reclaim(self) -> None:
        """Take slabs of which no block is in use away from their shapes."""
        for slab in range(self.slabs):
            size = self._owner[slab]
            if size and not self._used[slab]:
                shape = self._shapes[size]
                shape.free = deque(block for block in shape.free if self.slab_of(size, block) != slab)
                shape.slabs -= 1
                self._owner[slab] = 0
                self._free.append(slab)

    def slab_of(self, block_bytes: int, block: int) -> int:
        """The slab in which a block of a shape lies."""
        return block * block_bytes // self.slab_bytes

    def held_bytes(self) -> dict[int, tuple[int, int]]:
        """Of each shape: bytes in use, and bytes of its slabs."""
        return {size: (shape.used * size, shape.slabs * self.slab_bytes) for size, shape in self._shapes.items()}

    def _shape(self, block_bytes: int) -> _Shape:
        if block_bytes not in self._shapes:
            size = whole(block_bytes, "block_bytes", 1)
            if size > self.slab_bytes:
                problem = f"is {size:,}, more than a slab of {self.slab_bytes:,}"
                raise InputError(problem, "make slabs as large as the largest block", field="block_bytes")
            self._shapes[block_bytes] = _Shape(size)
        return self._shapes[block_bytes]

    def _enough(self, shape: _Shape, count: int) -> bool:
        missing = count - len(shape.free)
        found = 0
        for slab in reversed(self._free):
            if found >= missing:
                break
            first, behind = self._range(shape.block_bytes, slab)
            found += behind - first
        return found >= missing

    def _open(self, shape: _Shape) -> None:
        slab = self._free.pop()
        self._owner[slab] = shape.block_bytes
        shape.slabs += 1
        shape.free.extend(range(*self._range(shape.block_bytes, slab)))

    def _range(self, block_bytes: int, slab: int) -> tuple[int, int]:
        """First block that lies wholly in a slab, and the first behind it that does not."""
        begin = slab * self.slab_bytes
        return -(-begin // block_bytes), (begin + self.slab_bytes) // block_bytes
