"""Keys and values of one request: layer by layer, so that any range of layers can leave, arrive or be dropped."""

from typing import Any, NamedTuple

import numpy as np

from workbench.errors import InputError, WorkbenchError
from workbench.executor.transformer.shape import Shape, check_range
from workbench.records import whole


class MixedVersions(WorkbenchError):
    """Weights, activations or a cache of one version met those of another; nothing was computed."""

    def __init__(self, what: str, theirs: str, ours: str):
        super().__init__(
            f"{what} is of version {theirs!r} where version {ours!r} is loaded; versions are never mixed: finish or "
            "drop the work of one before the other begins."
        )


class KvPart(NamedTuple):
    """Keys and values of some layers and tokens, as they travel.

    Attributes:
        version: the weights that made them.
        first: the first layer.
        rows: float32 (layers, 2, kv heads, tokens, head width), contiguous.
    """

    version: str
    first: int
    rows: np.ndarray


class KvCache:
    """The cache of one request, for the layers that have run so far.

    Parameters:
        shape: of the model.
        capacity: most tokens, `shape.longest` by default.
        device: where it lies, "cpu" or a CUDA device.

    Attributes:
        version: the weights that made it, "" while it is empty.
    """

    def __init__(self, shape: Shape, capacity: int | None = None, device: str = "cpu"):
        self.shape, self.device, self.version = shape, device, ""
        self.capacity = whole(shape.longest if capacity is None else capacity, "capacity", 1, shape.longest)
        self._rows: dict[int, Any] = {}
        self._length: dict[int, int] = {}

    def length(self, layer: int) -> int:
        """Tokens that a layer has cached."""
        return self._length.get(layer, 0)

    def layers(self) -> list[int]:
        """The layers that have cached something, in order."""
        return sorted(self._length)

    def add(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Append keys and values (tokens, kv heads, width) of a layer; returns all, (kv heads, tokens, width) each."""
        start, added = self.length(layer), len(keys)
        if start + added > self.capacity:
            raise InputError(f"is {start + added} tokens long", f"stay within {self.capacity}", field="request")
        rows = self._of(layer)
        rows[0, :, start : start + added] = keys.transpose(0, 1)
        rows[1, :, start : start + added] = values.transpose(0, 1)
        self._length[layer] = start + added
        return rows[0, :, : start + added], rows[1, :, : start + added]

    def export(self, first: int, count: int, tokens: int | None = None) -> KvPart:
        """Copy some layers out, all tokens or the first ones (a shared prefix, say).

        Parameters:
            first, count: the layers.
            tokens: how many; by default all.
        """
        import torch

        length = self._common_length(first, count)
        tokens = length if tokens is None else whole(tokens, "tokens", 0, length)
        rows = [self._of(layer)[:, :, :tokens] for layer in range(first, first + count)]
        return KvPart(self.version, first, torch.stack(rows).cpu().numpy())

    def insert(self, part: KvPart) -> None:
        """Put layers in that another cache of the same request, or of its prefix, gave away; they must be missing here.

        Errors: `MixedVersions` for keys and values of other weights; `InputError` for another shape, more tokens than
            there is room for, or a layer that is there.
        """
        import torch

        kv_heads, width = self.shape.kv_heads, self.shape.head_width
        count, tokens = part.rows.shape[0], part.rows.shape[3]
        check_range(self.shape, part.first, count)
        if part.rows.shape[1:3] != (2, kv_heads) or part.rows.shape[4] != width or tokens > self.capacity:
            remedy = f"give (layers, 2, {kv_heads}, at most {self.capacity}, {width})"
            raise InputError(f"has the shape {part.rows.shape}", remedy, field="rows")
        self.belong_to(part.version)
        if present := [layer for layer in range(part.first, part.first + count) if layer in self._length]:
            raise InputError(f"brings layer {present[0]}, which is there", "drop the layer first", field="part")
        for layer, rows in enumerate(torch.tensor(part.rows), start=part.first):
            self._of(layer)[:, :, :tokens] = rows.to(self.device)
            self._length[layer] = tokens

    def drop(self, first: int, count: int) -> None:
        """Forget some layers and free their memory."""
        for layer in range(first, first + count):
            self._rows.pop(layer, None)
            self._length.pop(layer, None)
        if not self._length:
            self.version = ""

    def belong_to(self, version: str) -> None:
        """Note whose keys and values these are; `MixedVersions` where they are already somebody else's."""
        if self.version not in ("", version):
            raise MixedVersions("The cache of a request", self.version, version)
        self.version = version

    def _common_length(self, first: int, count: int) -> int:
        check_range(self.shape, first, count)
        lengths = {self.length(layer) for layer in range(first, first + count)}
        if len(lengths) > 1:
            raise InputError("has layers of unequal length", "run them all to the same token", field="cache")
        return lengths.pop()

    def _of(self, layer: int) -> Any:
        import torch

        if layer not in self._rows:
            size = (2, self.shape.kv_heads, self.capacity, self.shape.head_width)
            self._rows[layer] = torch.zeros(size, device=self.device)
        return self._rows[layer]
