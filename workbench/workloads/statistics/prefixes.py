"""How much of the prompts an unlimited prefix cache would have seen before."""

import polars as pl

from workbench.records import Record


class PrefixStatistics(Record):
    """Reuse of prompt blocks.

    Attributes:
        blocks: hash ids in all. unique_blocks: different ones.
        ideal_hit_share: share of blocks seen before, with an unlimited cache; since equal ids mean the same prefix up
            to and including the block, every block after its first appearance is a hit.
    """

    blocks: int
    unique_blocks: int
    ideal_hit_share: float


def prefix_statistics(hashes: pl.Series) -> PrefixStatistics:
    """Statistics of a column of hash lists."""
    ids = hashes.explode(empty_as_null=False)
    blocks, unique = len(ids), ids.n_unique()
    return PrefixStatistics(
        blocks=blocks, unique_blocks=unique, ideal_hit_share=1.0 - unique / blocks if blocks else float("nan")
    )
