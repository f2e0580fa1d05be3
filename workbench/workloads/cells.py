"""Token counts and hash lists as they are written in files, turned into whole numbers or into null."""

import polars as pl

MAX_TOKENS = 100_000_000
"""No request is longer; a larger number is a damaged cell."""

_EXACT = float(1 << 53)


def whole(column: str, dtype: pl.DataType) -> pl.Expr:
    """A column as Int64; `5.0` is 5; null where a cell is no whole number."""
    cell = pl.col(column)
    if dtype.is_integer():
        return cell.cast(pl.Int64, strict=False)
    if dtype.is_float():
        return _integral(cell)
    if dtype == pl.String:
        text = cell.str.strip_chars()
        return pl.coalesce(text.cast(pl.Int64, strict=False), _integral(text.cast(pl.Float64, strict=False)))
    return pl.lit(None, dtype=pl.Int64)


def _integral(number: pl.Expr) -> pl.Expr:
    exact = number.is_finite() & (number == number.floor()) & (number.abs() <= _EXACT)
    return pl.when(exact).then(number).cast(pl.Int64, strict=False)


def hash_lists(cells: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Hash ids as lists of Int64 (UInt64 where they need it), and which rows hold no such list.

    Parameters:
        cells: lists of whole numbers, or text with the numbers separated by spaces.
    """
    if cells.dtype == pl.String:
        words = cells.str.strip_chars().str.split(" ")
        lists = words.list.eval(pl.element().filter(pl.element() != ""))
    elif isinstance(cells.dtype, pl.List) and cells.dtype.inner.is_integer():
        lists = cells
    else:
        return cells, pl.Series(cells.name, [True] * len(cells))
    for dtype in (pl.Int64, pl.UInt64):
        numbers = lists.cast(pl.List(dtype), strict=False)
        bad = numbers.is_null() | numbers.list.eval(pl.element().is_null()).list.any().fill_null(False)
        if not bad.any():
            break
    return numbers, bad


def tidy_ids(ids: pl.Series) -> pl.Series:
    """Request ids as Int64 when every one is a plainly written whole number, else as text."""
    if ids.dtype.is_integer():
        return ids.cast(pl.Int64, strict=False)
    text = ids.cast(pl.String)
    numbers = text.cast(pl.Int64, strict=False)
    plain = numbers.null_count() == 0 and bool((numbers.cast(pl.String) == text).all())
    return numbers if plain else text
