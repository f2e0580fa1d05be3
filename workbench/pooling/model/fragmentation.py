"""How much of the host's slabs is free but taken: the KV caches of a run, replayed through the slab allocator."""

from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.pooling.model.lowered import Lowered, Outcome
from workbench.pooling.policy import SlabPool


class Replay(NamedTuple):
    """What a replay found.

    Attributes:
        shapes: per shape and for all: `shape` (bytes of a block, 0 for all), `used_bytes, slab_bytes` at the moment
            when its slabs were most, and `fragmentation`, the free share of them.
        failures: allocations for which there was no room.
    """

    shapes: pl.DataFrame
    failures: int


def replay_slabs(lowered: Lowered, outcome: Outcome, slab_bytes: int, slabs: int) -> Replay:
    """Take and free the blocks of a run in the first host's slabs, in the order in which that happened.

    Slabs of which no block is in use go back when blocks are freed. What fails is left out, with what would free it.

    Parameters:
        lowered, outcome: a run.
        slab_bytes, slabs: of each slab; how many the host has.

    Source: Aegaeon (SOSP'25) §5.2, Figure 16; measure as in the artifact's plots/plot_frag.py.
    """
    pool = SlabPool(slab_bytes, slabs)
    sizes = lowered.models.block_bytes
    held: dict[int, list[int]] = {}
    peaks: dict[int, tuple[int, int]] = {}
    failures = 0
    for _, where, request, model, blocks in outcome.host:
        if int(where):
            continue
        size, key = int(sizes[int(model)]), int(request)
        if blocks > 0:
            found = pool.allocate(size, int(blocks))
            if found is None:
                failures += 1
                continue
            held[key] = found
        elif key in held:
            pool.free(size, held.pop(key))
            pool.reclaim()
        now = pool.held_bytes()
        now[0] = tuple(np.sum(list(now.values()), axis=0).tolist())
        for shape, (used, whole) in now.items():
            if whole > peaks.get(shape, (0, 0))[1]:
                peaks[shape] = (used, whole)
    rows = [(shape, used, whole, 1 - used / whole) for shape, (used, whole) in sorted(peaks.items()) if whole]
    schema = {"shape": pl.Int64, "used_bytes": pl.Int64, "slab_bytes": pl.Int64, "fragmentation": pl.Float64}
    return Replay(pl.DataFrame(rows, schema=schema, orient="row"), failures)
