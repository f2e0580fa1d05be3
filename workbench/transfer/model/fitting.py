"""Overhead and bandwidth from measured times, and how well the rest predicts each of them."""

from collections.abc import Sequence

import numpy as np

from workbench.errors import InputError
from workbench.transfer.model.cost import Hockney


def fit_hockney(
    messages: Sequence[float], message_bytes: Sequence[float], seconds: Sequence[float], relative: bool = False
) -> Hockney:
    """α and B of time = messages x (α + bytes/B) by least squares.

    Parameters (one entry a measurement):
        messages: messages or steps, one after the other, that the time consists of.
        message_bytes: size of each of them.
        seconds: measured time.
        relative: whether to fit relative errors rather than seconds; choose it where sizes span decades, or the largest
            message alone decides.

    Raises:
        `InputError` for fewer than two different measurements, or where the best fit has no positive bandwidth. A
        negative best α is set to 0 and B fitted alone.

    >>> fitted = fit_hockney([1, 1], [1e6, 3e6], [0.002, 0.004])
    >>> round(fitted.alpha_s, 9), round(fitted.bytes_per_s)
    (0.001, 1000000000)
    """
    count, size, time = _columns(messages, message_bytes, seconds)
    columns = np.column_stack([count, count * size])
    if relative:
        if (time <= 0).any():
            raise InputError("a measured time is not above 0", "remove it or fit absolute errors")
        columns, time = columns / time[:, None], np.ones_like(time)
    if len(time) < 2 or not size.any():
        raise _too_alike()
    scale = np.abs(columns).max(axis=0)
    (alpha, per_byte), _, rank, _ = np.linalg.lstsq(columns / scale, time, rcond=None)
    if rank < 2:
        raise _too_alike()
    alpha, per_byte = alpha / scale[0], per_byte / scale[1]
    if alpha < 0:
        alpha, per_byte = 0.0, (columns[:, 1] @ time) / (columns[:, 1] @ columns[:, 1])
    if per_byte <= 0:
        raise InputError("the measured times do not grow with the size", "check their order and units")
    return Hockney(alpha_s=float(alpha), bytes_per_s=float(1 / per_byte))


def leave_one_out(messages: Sequence[float], message_bytes: Sequence[float], seconds: Sequence[float]) -> np.ndarray:
    """Each measured time as predicted by a fit to all the others, float (measurements,).

    Parameters:
        messages, message_bytes, seconds: as in `fit_hockney`, which is fitted without one measurement after the other.
    """
    rows = _columns(messages, message_bytes, seconds)
    predicted = []
    for left_out in range(len(rows[2])):
        cost = fit_hockney(*(np.delete(row, left_out) for row in rows))
        predicted.append(rows[0][left_out] * cost.travel_s(rows[1][left_out]))
    return np.array(predicted)


def _columns(*given: Sequence[float]) -> list[np.ndarray]:
    """Messages, sizes and seconds as columns of equal length; at least one message each, nothing below 0."""
    try:
        columns = [np.asarray(column, dtype=float) for column in given]
    except (TypeError, ValueError, OverflowError):
        columns = []
    lengths = {column.shape for column in columns}
    if len(lengths) != 1 or len(lengths.pop()) != 1 or not np.isfinite(columns).all():
        raise InputError("the measurements are not three columns of equal length and finite numbers", "correct them")
    if (np.array(columns) < 0).any() or (columns[0] <= 0).any():
        raise InputError("a number of messages is not above 0, or a size or time is below it", "correct it")
    return columns


def _too_alike() -> InputError:
    return InputError("the measurements do not tell overhead from bandwidth", "add one with another message size")
