"""Request tables that come from different users and so share no prefix."""

import polars as pl

_HASHES = "prefix_hashes"


def hashes_apart(tables: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """The tables with prefix hashes numbered anew, so that no two tables have one in common."""
    if _HASHES not in tables[0].columns:
        return tables
    apart, used = [], 0
    for table in tables:
        flat = table.select(pl.col(_HASHES)).with_row_index("place").explode(_HASHES, empty_as_null=False)
        dense = flat.with_columns(pl.col(_HASHES).rank("dense").cast(pl.Int64) + (used - 1))
        used += flat[_HASHES].n_unique()
        lists = dense.group_by("place", maintain_order=True).agg(_HASHES)
        places = pl.DataFrame({"place": pl.Series(range(table.height), dtype=lists.schema["place"])})
        found = places.join(lists, on="place", how="left", maintain_order="left")[_HASHES].fill_null([])
        apart.append(table.with_columns(found.alias(_HASHES)))
    return apart
