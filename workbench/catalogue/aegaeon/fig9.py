"""Figure 9: one region of slabs for KV caches of several shapes."""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.aegaeon.tab1 import MODELS
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Match, experiment
from workbench.pooling.policy import SlabPool
from workbench.results import Verdict

ASIDE = "memory set aside"
PARTS = {
    "weights per GPU": 14e9, "prefetched weights per GPU": 28e9, "KV cache per GPU": 30e9, "stage buffer per GPU": 2e9,
    "host model cache per node": 640e9, "host KV cache per node": 320e9,
}  # fmt: skip
SHAPES = ("Qwen2.5-7B", "Yi-1.5-6B", "Yi-1.5-9B", "InternLM2.5-7B", "Llama-2-7B", "Llama-2-13B")
BLOCK_TOKENS = 16


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["usage"].filter(pl.col("shape") == "all")
    peak = table.sort("slab_bytes").row(-1, named=True)
    return (
        f"At the peak {peak['slab_bytes'] / 2**30:,.1f} GiB of slabs hold {peak['used_bytes'] / 2**30:,.1f} GiB of KV "
        f"caches of {len(SHAPES)} shapes, so {1 - peak['used_bytes'] / peak['slab_bytes']:.0%} are free but taken; "
        f"{tables['totals']['failures'][0]} allocations found no room."
    )


def _judge(draft: Draft) -> list[Verdict]:
    row = draft.tables["totals"].row(0, named=True)
    right = row["broken"] == 0 and row["reused"] > 0
    return [
        Verdict(
            claim="no two blocks overlap, none straddles a slab, an empty slab is reused by another shape",
            published="properties stated in §5.2",
            ours=f"{row['broken']} broken, {row['reused']} slabs reused by another shape",
            strength="ordering",
            verdict="reproduced" if right else "differs",
            reason="checked after every allocation"
            + ("" if right else ". Assumed here: enough allocations that a slab empties"),
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "aegaeon/fig9",
    title="How do KV caches of several shapes share memory?",
    question="What do slabs that change their shape cost in memory that is taken but free?",
    backends=("compiled",),
    seconds={"compiled": 1.0},
    draw="pooling_memory.slabs",
    panels=("usage", "layout"),
    say=_say,
    stochastic=True,
    matches=(Match((ASIDE, "share of GPU memory left to the tensor library", "slab size"), fitted=ALL),),
    judges=(_judge,),
)
def fig9(
    context: Context,
    *,
    slab_mib: Annotated[
        int, Par("Slab", "MiB", low=64, high=4096, log=True, free=True, status="published", source="artifact: 1 GiB")
    ] = 1024,
    slabs: Annotated[int, Par("Slabs", low=4, high=512, free=True, status="published", source="artifact: 128")] = 128,
    requests: Annotated[int, Par("Requests in the host at a time", low=1, high=2000, free=True, source="chosen")] = 150,
    tokens: Annotated[
        int, Par("Mean tokens of a request", low=16, high=8000, free=True, source="as in the traces")
    ] = 1000,
    operations: Annotated[int, Par("Requests in all", low=50, high=5_000, free=True, source="chosen")] = 2000,
) -> dict[str, pl.DataFrame]:
    """Bytes used and bytes of slabs by shape while requests of six shapes come and go; the last layout."""
    rng = context.random("slabs")
    pool = SlabPool(slab_mib * 2**20, slabs)
    sizes = [context.model(MODELS[name]).kv_bytes_per_token * BLOCK_TOKENS for name in SHAPES]
    count = operations // 4 if context.mode == "quick" else operations
    held: list[tuple[int, list[int]]] = []
    rows, failures, reused, owner = [], 0, 0, {}
    for step in range(count):
        shape = int(rng.integers(len(SHAPES)))
        blocks = pool.allocate(sizes[shape], max(1, round(rng.exponential(tokens) / BLOCK_TOKENS)))
        if blocks is None:
            failures += 1
        else:
            held.append((sizes[shape], blocks))
            for slab in {pool.slab_of(sizes[shape], block) for block in blocks}:
                reused += owner.get(slab, shape) != shape
                owner[slab] = shape
        while len(held) > requests or (blocks is None and held):
            pool.free(*held.pop(int(rng.integers(len(held)))))
            blocks = []
        pool.reclaim()
        if step % max(1, count // 200) == 0 or step == count - 1:
            rows += _usage(step, pool, sizes)
    layout = _layout(held, slab_mib * 2**20)
    broken = _broken(held, pool.slab_bytes)
    totals = pl.DataFrame([{"failures": failures, "reused": reused, "broken": broken}])
    known = [(ASIDE, name, size, "bytes") for name, size in PARTS.items()]
    known += [
        ("slab size", "artifact", 2**30, "bytes"),
        ("share of GPU memory left to the tensor library", "", 0.1, "1"),
    ]
    return {"usage": pl.DataFrame(rows), "layout": layout, "totals": totals, "headline": headline(known)}


def _usage(step: int, pool: SlabPool, sizes: list[int]) -> list[dict[str, Any]]:
    held = pool.held_bytes()
    rows = [(name, *held.get(size, (0, 0))) for name, size in zip(SHAPES, sizes, strict=True)]
    rows.append(("all", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    return [{"step": step, "shape": name, "used_bytes": used, "slab_bytes": whole} for name, used, whole in rows]


def _layout(held: list[tuple[int, list[int]]], slab_bytes: int) -> pl.DataFrame:
    """Of every slab in use: the bytes of a block, and the share of it that is used."""
    used: dict[tuple[int, int], int] = {}
    for size, blocks in held:
        for block in blocks:
            key = (block * size // slab_bytes, size)
            used[key] = used.get(key, 0) + size
    rows = [
        {"slab": slab, "block_bytes": size, "used_share": taken / slab_bytes} for (slab, size), taken in used.items()
    ]
    schema = {"slab": pl.Int64, "block_bytes": pl.Int64, "used_share": pl.Float64}
    return pl.DataFrame(rows, schema=schema).sort("slab")


def _broken(held: list[tuple[int, list[int]]], slab_bytes: int) -> int:
    """How many blocks straddle a slab or begin before the one before them ends."""
    spans = sorted((block * size, block * size + size) for size, blocks in held for block in blocks)
    straddle = sum(begin // slab_bytes != (end - 1) // slab_bytes for begin, end in spans)
    return straddle + sum(after[0] < before[1] for before, after in itertools.pairwise(spans))
