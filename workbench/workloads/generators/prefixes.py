"""Prefix hashes with a given ideal hit share."""

from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from workbench.errors import InputError
from workbench.records import Asked, AtLeastOne

MOST_HASHES = 100_000_000
"""Hashes in one trace; beyond that memory would not hold them."""


class SharedPrefixes(Asked):
    """Prompts that begin like an earlier one often enough.

    Whenever the share of blocks seen before lies under the wanted one, a request starts with the prefix of an earlier
    request, chosen at random among those of the last `memory` that are long enough; otherwise all its blocks are new.
    So the ideal hit share is met by construction, and nothing else about reuse (how deep, how long after) is claimed.

    Attributes:
        block_tokens: prompt tokens that one hash covers.
        hit_share: share of blocks that an unlimited cache has seen.
        memory: how many requests back a prefix may come from.
    """

    block_tokens: AtLeastOne
    hit_share: Annotated[float, Field(ge=0, lt=1)]
    memory: Annotated[int, Field(ge=1, le=100_000)] = 1000

    def draw(self, prompt_tokens: np.ndarray, rng: np.random.Generator) -> pl.Series:
        """Hash lists for prompts of these lengths, one id per started block."""
        blocks = -(-prompt_tokens // self.block_tokens)
        if (total := int(blocks.sum())) > MOST_HASHES:
            problem = f"makes {total:,} hashes, more than {MOST_HASHES:,}"
            raise InputError(problem, "let a block hold more tokens", field="block_tokens")
        chosen = rng.random(blocks.size)
        lists: list[np.ndarray] = []
        seen = hits = fresh = 0
        for place, count in enumerate(blocks.tolist()):
            wanted = min(int(self.hit_share * (seen + count)) - hits, count)
            shared = np.zeros(0, dtype=np.int64)
            if place and wanted > 0:
                start = max(place - self.memory, 0)
                recent = blocks[start:place]
                enough = np.flatnonzero(recent >= min(wanted, int(recent.max())))
                shared = lists[start + enough[int(chosen[place] * enough.size)]][:wanted]
            new = count - shared.size
            lists.append(np.append(shared, np.arange(fresh, fresh + new)))
            fresh, hits, seen = fresh + new, hits + shared.size, seen + count
        return pl.Series("prefix_hashes", lists).cast(pl.List(pl.Int64))
