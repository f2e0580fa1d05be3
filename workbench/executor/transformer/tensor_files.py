"""Tensors in one contiguous region, in the safetensors format: no code in them, and read without a copy.

The layout is that of the format's public description: eight bytes with the length of a JSON header, the header with
name, type, shape and place of every tensor, then the tensors without gaps. A file read into memory, or a block that
came over a network, is used where it lies.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from workbench.errors import InputError

LONGEST_HEADER = 1 << 20
MOST_TENSORS = 10_000
ALIGNMENT = 64
KINDS = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
NAMES = {kind: name for name, kind in KINDS.items()}


class TensorFile(NamedTuple):
    """What a file holds.

    Attributes:
        tensors: views into the memory that was given.
        notes: the texts that the header carries beside the tensors.
    """

    tensors: dict[str, np.ndarray]
    notes: dict[str, str]


def pack(tensors: Mapping[str, np.ndarray], notes: Mapping[str, str]) -> bytes:
    """Tensors one behind the other, in the order given; the first starts at a multiple of 64 bytes.

    Equal sizes and notes of equal length give equal offsets, so that the same tensor lies alike in every copy: some
    routines for matrices choose their way by the alignment of the memory.
    """
    header: dict[str, Any] = {"__metadata__": dict(notes)}
    place = 0
    for name, tensor in tensors.items():
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [place, place + tensor.nbytes],
        }
        place += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return b"".join(
        [len(text).to_bytes(8, "little"), text, *(np.ascontiguousarray(one).tobytes() for one in tensors.values())]
    )


def unpack(memory: np.ndarray, name: str) -> TensorFile:
    """The tensors that lie in some memory, without copying them.

    Parameters:
        memory: uint8 (bytes,), the whole file.
        name: of the file or block, for errors.

    Errors: `InputError` for anything but a whole, well-formed file: a header that is too long or no JSON, an unknown
        type, tensors that overlap, leave gaps or reach beyond the end.
    """

    def refuse(problem: str) -> InputError:
        return InputError(problem, "fetch or make it again", file=name)

    if len(memory) < 8:
        raise refuse(f"holds {len(memory)} bytes, too few for a safetensors file")
    length = int.from_bytes(memory[:8].tobytes(), "little")
    if length > min(LONGEST_HEADER, len(memory) - 8):
        raise refuse(f"its header would have {length} bytes")
    try:
        header = json.loads(memory[8 : 8 + length].tobytes(), object_pairs_hook=_each_once)
        notes = header.pop("__metadata__", {})
        entries = [(key, KINDS[value["dtype"]], value["shape"], value["data_offsets"]) for key, value in header.items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise refuse("its header is no list of single, double or half precision tensors") from None
    if len(entries) > MOST_TENSORS or not _texts(notes):
        raise refuse("its header holds something else than tensors and texts")
    for key, _, size, offsets in entries:
        if not (_whole_numbers(size) and _whole_numbers(offsets) and len(offsets) == 2):
            raise refuse(f"the place of tensor {key[:60]!r} is no pair of whole numbers")
    tensors, place, data = {}, 0, memory[8 + length :]
    for key, kind, size, (start, end) in sorted(entries, key=lambda entry: entry[3]):
        if start != place or end != start + math.prod(size) * kind.itemsize or end > len(data):
            raise refuse(f"tensor {key[:60]!r} does not lie behind the one before it, whole")
        tensors[key], place = data[start:end].view(kind).reshape(size), end
    if place != len(data):
        raise refuse(f"{len(data) - place} bytes at its end belong to no tensor")
    return TensorFile(tensors, notes)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _texts(notes: Any) -> bool:
    return isinstance(notes, dict) and all(isinstance(text, str) for text in notes.values())


def _whole_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)
