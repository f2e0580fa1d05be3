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


def prefixes(table: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Where the ids of each request begin, int64[n + 1], and the ids, int64[t], from its `prefix_hashes`.

    Hashes are numbered from 0; requests without any, or all without such a column, have no ids.

    Raises:
        InputError: the column holds no lists, or a list misses a hash.
    """
    if "prefix_hashes" not in table.columns:
        return np.zeros(len(table) + 1, np.int64), np.empty(0, np.int64)
    given = table["prefix_hashes"]
    if not isinstance(given.dtype, pl.List):
        raise InputError(f"is of type {given.dtype}", "give a list of hashes a request", field="prefix_hashes")
    counts = given.list.len().fill_null(0).cast(pl.Int64).to_numpy()
    hashes = given.explode(empty_as_null=False).drop_nulls()
    if len(hashes) < counts.sum():
        row = int((given.list.eval(pl.element().is_null()).list.any()).fill_null(False).arg_max())
        raise InputError("holds a list with a missing hash", "leave it out", row=row + 1, field="prefix_hashes")
    number = hashes.rank("dense").cast(pl.Int64).to_numpy() - 1
    return np.concatenate([[0], np.cumsum(counts)]), number
