"""Prefix hashes: lists of 64-bit whole numbers, as many as the prompt has blocks."""

import polars as pl

from workbench.workloads.cells import hash_lists
from workbench.workloads.files.head import ROW
from workbench.workloads.ledger import Ledger
from workbench.workloads.readers.mapping import Mapping


def with_sound_hashes(table: pl.DataFrame, mapping: Mapping, ledger: Ledger) -> pl.DataFrame:
    """Refuse or drop rows whose hashes cannot be right; give the rest as `prefix_hashes`."""
    lists, bad = hash_lists(table["hashes"])
    kept = ledger.reject(table, bad, mapping.hashes, "the cell is not a list of whole numbers of 64 bits")
    if kept.height < table.height:
        lists, _ = hash_lists(kept["hashes"])
    kept = kept.drop("hashes").with_columns(lists.alias("prefix_hashes"))
    if mapping.hashes_cover_prompt:
        kept = _with_as_many_as_blocks(kept, mapping, ledger)
    if mapping.last_block_differs and kept.height:
        handling = "left out: its hash covers padding"
        ledger.note("last prefix block of each prompt", kept.height, handling, example_row=int(kept[ROW][0]))
        full = pl.col("prefix_hashes").list.len().cast(pl.Int64) - 1
        kept = kept.with_columns(pl.col("prefix_hashes").list.head(pl.max_horizontal(full, 0)))
    return kept


def _with_as_many_as_blocks(table: pl.DataFrame, mapping: Mapping, ledger: Ledger) -> pl.DataFrame:
    size = mapping.block_tokens
    counted = table.with_columns(
        ids=pl.col("prefix_hashes").list.len().cast(pl.Int64), blocks=(pl.col("prompt_tokens") + size - 1) // size
    )

    def shown(row: int) -> str:
        case = counted.filter(pl.col(ROW) == row).row(0, named=True)
        return f"{case['ids']} ids, {case['blocks']} blocks"

    return ledger.reject(
        table,
        counted["ids"] != counted["blocks"],
        mapping.hashes,
        f"the number of hash ids does not fit the prompt at {size} tokens a block",
        shown,
        'state the block size with block_tokens= or pass bad_rows="drop"',
    )
