"""Columns that a request table may have beside those of every trace, as arrays."""

import numpy as np
import polars as pl

from workbench.errors import InputError


def ranks(table: pl.DataFrame) -> np.ndarray:
    """int64[n], the `priority` of each request, 0 for those that go first; all 0 without such a column.

    Raises:
        InputError: a priority that is no whole number of 0 or more.
    """
    if "priority" not in table.columns:
        return np.zeros(len(table), np.int64)
    given, remedy = table["priority"], "give whole numbers of 0 or more, 0 first"
    if not given.dtype.is_integer():
        raise InputError(f"is of type {given.dtype}", remedy, field="priority")
    whole = given.cast(pl.Int64, strict=False)
    good = (whole >= 0).fill_null(False)
    if not good.all():
        row = int(good.arg_min())
        raise InputError(f"is {given[row]}", remedy, row=row + 1, field="priority")
    return whole.to_numpy()
