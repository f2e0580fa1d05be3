"""Servers and the model they host together: memory, seconds, bytes of a block and of a job's cache."""

from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from workbench.errors import InputError
from workbench.queueing.checking import vector
from workbench.records import Asked

MOST_BYTES = 2**53


def whole_bytes(values, name: str) -> np.ndarray:
    """Bytes as int64[J]: whole numbers, because a rounded quotient of bytes loses a block."""
    array = vector(values, name)
    if (array != np.round(array)).any() or (array > MOST_BYTES).any():
        row = int(np.argmax((array != np.round(array)) | (array > MOST_BYTES)))
        raise InputError(f"is {array[row]:.17g}", "give whole bytes, at most 2^53", row=row + 1, field=name)
    return _kept(array.astype(np.int64))


def _kept(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.flags.writeable = False
    return array


def of_one_kind(array: np.ndarray) -> np.ndarray:
    """The array, or a copy where it must not be written to: kernels would be compiled once more for such arrays.

    The arrays of a fleet are such ones, unlike those of its copies, here or in another process.
    """
    return array if array.flags.writeable else array.copy()


Bytes = Annotated[np.ndarray, BeforeValidator(lambda value, info: whole_bytes(value, info.field_name))]
Seconds = Annotated[np.ndarray, BeforeValidator(lambda value, info: _kept(vector(value, info.field_name)))]


class Fleet(Asked):
    """J servers that together host a model of L like blocks.

    Attributes:
        memory_bytes: whole[J], memory for weights and cache of each server.
        communication_s: float[J], mean seconds that a job spends on coming to a server and back, over all its tokens.
        compute_s: float[J], mean seconds of a job for each block that it has processed on a server.
        layers: L.
        block_bytes: weights of one block (s_m).
        cache_bytes: cache of one block for one job (s_c), sized for the longest sequence.

    >>> Fleet(memory_bytes=[20, 30], communication_s=[1, 2], compute_s=[0.1, 0.2], layers=3, block_bytes=10,
    ...       cache_bytes=1).servers
    2
    """

    memory_bytes: Bytes
    communication_s: Seconds
    compute_s: Seconds
    layers: Annotated[int, Field(ge=1, le=10_000)]
    block_bytes: Annotated[int, Field(ge=1, le=MOST_BYTES)]
    cache_bytes: Annotated[int, Field(ge=1, le=MOST_BYTES)]

    @model_validator(mode="after")
    def _fits_together(self):
        for name in ("communication_s", "compute_s"):
            if getattr(self, name).size != self.memory_bytes.size:
                raise InputError(
                    f"holds {getattr(self, name).size} numbers for {self.memory_bytes.size} servers",
                    "give one for each server",
                    field=name,
                )
        if ((self.communication_s + self.compute_s) == 0).any():
            raise InputError("and compute_s are both 0 for a server", "give one above 0", field="communication_s")
        return self

    @property
    def servers(self) -> int:
        """J."""
        return int(self.memory_bytes.size)

    @property
    def most_reserved(self) -> int:
        """The largest c for which some server still hosts a block; 0 where none does."""
        return max(0, (int(self.memory_bytes.max()) - self.block_bytes) // self.cache_bytes)
