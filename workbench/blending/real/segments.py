"""Keys and values of shared prompt segments, one copy each, and caches of requests that read along a path of them."""

from collections.abc import Sequence
from typing import Any

from workbench.errors import WorkbenchError
from workbench.executor.transformer import MixedVersions, Shape


class NotThere(WorkbenchError):
    """A request was to go on behind tokens whose keys and values are not there."""


class Segment:
    """Keys and values of some neighbouring tokens, computed once, by whoever comes first.

    Parameters:
        shape: of the model.
        capacity: tokens of the segment.
        device: where they lie.

    Attributes:
        rows: of each layer float32 (2, kv heads, capacity, head width). length: of each layer the tokens computed.
        version: the weights that made it, "" while it is empty.
    """

    def __init__(self, shape: Shape, capacity: int, device: str):
        import torch

        size = (2, shape.kv_heads, capacity, shape.head_width)
        self.rows = [torch.empty(size, device=device) for _ in range(shape.layers)]
        self.capacity, self.length, self.version = capacity, [0] * shape.layers, ""

    def write(self, layer: int, keys: Any, values: Any) -> None:
        """Append keys and values (tokens, kv heads, width) that fit."""
        start = self.length[layer]
        place = slice(start, start + len(keys))
        self.rows[layer][0, :, place] = keys.transpose(0, 1)
        self.rows[layer][1, :, place] = values.transpose(0, 1)
        self.length[layer] = start + len(keys)


class PathCache:
    """The cache of one request: shared segments from the root down, then its own tokens. A stage takes it for a cache.

    Parameters:
        parts: the segments, the request's own last.
    """

    def __init__(self, parts: Sequence[Segment]):
        self.parts = tuple(parts)

    def length(self, layer: int) -> int:
        """Tokens that a layer can read."""
        return sum(part.length[layer] for part in self.parts)

    def belong_to(self, version: str) -> None:
        """Note whose keys and values these are; `MixedVersions` where a part is already somebody else's."""
        for part in self.parts:
            if part.version not in ("", version):
                raise MixedVersions("A shared segment", part.version, version)
            part.version = version

    def add(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Fill the parts in order with keys and values (tokens, kv heads, width).

        Returns all keys and all values, (kv heads, tokens, width) each. One part alone is read where it lies; several
        are copied together for this read.
        """
        import torch

        placed = 0
        for part in self.parts:
            room = min(part.capacity - part.length[layer], len(keys) - placed)
            if room:
                part.write(layer, keys[placed : placed + room], values[placed : placed + room])
                placed += room
        filled = [part.rows[layer][:, :, : part.length[layer]] for part in self.parts if part.length[layer]]
        rows = filled[0] if len(filled) == 1 else torch.cat(filled, 2)
        return rows[0], rows[1]


class Store:
    """All segments that are there, by the node of the prefix tree.

    Parameters:
        shape: of the model. parents, tokens: of every node its parent (-1 for the root) and its own tokens.
        device: where the segments lie.
    """

    def __init__(self, shape: Shape, parents: Sequence[int], tokens: Sequence[int], device: str):
        self._shape, self._parents, self._tokens, self._device = shape, parents, tokens, device
        self.there: dict[int, Segment] = {}

    def path(self, node: int, own: int) -> PathCache:
        """The cache of a request below a node, with room for `own` tokens more; missing segments begin empty."""
        parts = [Segment(self._shape, own, self._device)]
        while node > 0:
            if node not in self.there:
                self.there[node] = Segment(self._shape, self._tokens[node], self._device)
            parts.append(self.there[node])
            node = self._parents[node]
        return PathCache(parts[::-1])

    def bring_back(self, node: int, cache: PathCache) -> None:
        """Have the shared segments of a request again that was away, unless others have computed them anew."""
        for part in cache.parts[-2::-1]:
            self.there.setdefault(node, part)
            node = self._parents[node]

    def drop(self, nodes: Sequence[int]) -> None:
        """Forget segments that nobody uses."""
        for node in nodes:
            del self.there[node]
