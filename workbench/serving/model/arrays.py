"""Arrays as backends take them, refused with their name and row where they cannot be."""

import math

import numpy as np

from workbench.errors import InputError


def reals(given, name: str, shape: tuple[int, ...] | None = None, endless: bool = False) -> np.ndarray:
    """Contiguous float64 of a shape (one dimension of any length when None), finite, or also infinite if `endless`."""
    array = np.ascontiguousarray(given, dtype=np.float64)
    if array.shape != (shape or (array.size,)):
        raise InputError(f"has shape {array.shape}", f"give shape {shape or '(n,)'}", field=name)
    if endless:
        right(~np.isnan(array), name, "give numbers, or infinity")
    else:
        right(np.isfinite(array), name, "give finite numbers")
    return array


def wholes(given, name: str, shape: int | tuple[int, ...], least: int) -> np.ndarray:
    """Contiguous int64 of a shape, or of so many numbers, none below `least`."""
    array, shape = np.asarray(given), (shape,) if isinstance(shape, int) else shape
    if array.shape != shape or (array.size and array.dtype.kind not in "iub"):
        raise InputError(
            f"is {array.dtype} of shape {array.shape}", f"give {math.prod(shape)} whole numbers", field=name
        )
    array = np.ascontiguousarray(array, dtype=np.int64)
    right(array >= least, name, f"give whole numbers of {least} or more")
    return array


def checked_forms(given, name: str, size: int) -> np.ndarray:
    """float64[size, 2, 5], coefficients of step times that give every step a time above 0."""
    form = reals(given, name, (size, 2, 5))
    right(form >= 0, name, "give step-time coefficients of 0 or more")
    # A step may be one request that decodes or one token of a prompt; whatever row counts both gives it a time.
    counted = form[:, :, 0] + form[:, :, 4] > 0
    right(counted.any(axis=1), name, "give every step a time above 0: a constant part, or one a request")
    return form


def right(good: np.ndarray, name: str, remedy: str, first_row: int = 1) -> None:
    """Refuse an array at the first place where `good` is False."""
    if not good.all():
        row = int(np.argwhere(~good)[0, 0])
        raise InputError("holds a value that cannot be used", remedy, row=row + first_row, field=name)
