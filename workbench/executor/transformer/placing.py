"""Where weights go: on a CPU they are used as they lie, to a GPU they are copied beside the computing."""

from typing import Any, Protocol

import numpy as np


class Places(Protocol):
    """A way to make arrays of the host usable on a device."""

    def place(self, values: np.ndarray) -> Any:
        """Begin to bring an array there and return its handle."""

    def ready(self, handle: Any) -> Any:
        """The tensor behind a handle, for whoever computes next."""


class OnHost:
    """The memory of the array is the tensor's memory."""

    def place(self, values: np.ndarray) -> Any:
        """See `Places`."""
        import torch

        return torch.from_numpy(values)

    def ready(self, handle: Any) -> Any:
        """See `Places`."""
        return handle


class OnCuda:
    """Copies run on a stream of their own; the computing stream waits for the event behind a tensor's copy.

    A copy overlaps with computing only from pinned memory (`pin`); from other memory it is right, and slower.
    """

    def __init__(self, device: str):
        import torch

        self._device, self._stream = torch.device(device), torch.cuda.Stream(device)

    def place(self, values: np.ndarray) -> Any:
        """See `Places`."""
        import torch

        with torch.cuda.stream(self._stream):
            tensor = torch.from_numpy(values).to(self._device, non_blocking=True)
            copied = self._stream.record_event()
        return tensor, copied

    def ready(self, handle: Any) -> Any:
        """See `Places`."""
        import torch

        tensor, copied = handle
        computing = torch.cuda.current_stream(self._device)
        computing.wait_event(copied)
        tensor.record_stream(computing)
        return tensor


def place_for(device: str) -> Places:
    """The way to a device."""
    return OnHost() if device == "cpu" else OnCuda(device)


def pin(memory: np.ndarray) -> None:
    """Lock host memory in place, so that copies from it to a GPU run beside everything else.

    Errors: RuntimeError where the driver refuses, as without a GPU.
    """
    import torch

    status = torch.cuda.cudart().cudaHostRegister(memory.ctypes.data, memory.nbytes, 0)
    if int(status):
        raise RuntimeError(f"the driver did not pin {memory.nbytes} bytes (status {int(status)})")
