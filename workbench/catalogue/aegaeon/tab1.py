"""Table 1: shapes and sizes of KV caches."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.pooling.policy import SlabPool

MODELS = {
    "Qwen2.5-7B": "qwen2.5-7b",
    "Yi-1.5-6B": "yi-1.5-6b",
    "Yi-1.5-9B": "yi-1.5-9b",
    "InternLM2.5-7B": "internlm2.5-7b",
    "Qwen-7B": "qwen-7b",
    "Llama-2-7B": "llama-2-7b",
    "Llama-2-13B": "llama-2-13b",
    "Qwen1.5-14B": "qwen1.5-14b",
    "Qwen2.5-72B": "qwen2.5-72b",
    "Qwen-72B": "qwen-72b",
}


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["shapes"].sort("kv_bytes_per_token")
    low, high = table.row(0, named=True), table.row(-1, named=True)
    return (
        f"A token takes {low['kv_bytes_per_token'] / 1024:,.0f} KiB of {low['model']} and "
        f"{high['kv_bytes_per_token'] / 1024:,.0f} KiB of {high['model']}, so one cache for all needs blocks of "
        f"{table['kv_bytes_per_token'].n_unique()} sizes."
    )


@experiment(
    "aegaeon/tab1",
    title="How large are KV caches?",
    question="How many bytes does a token take in the cache of each model, and how many tokens fit a slab?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="pooling_formulas.shapes",
    say=_say,
    matches=(Match(tolerance=0.0),),
)
def tab1(
    context: Context,
    *,
    block_tokens: Annotated[
        int, Par("Tokens of a block", low=1, high=256, status="published", source="artifact: 16")
    ] = 16,
    slab_mib: Annotated[
        int, Par("Slab", "MiB", low=64, high=4096, log=True, free=True, status="published", source="artifact: 1 GiB")
    ] = 1024,
) -> dict[str, pl.DataFrame]:
    """Layers, KV heads and width of each model, bytes of a token and a block, and tokens of a slab."""
    rows, known = [], []
    for label, name in MODELS.items():
        model = context.model(name)
        block = model.kv_bytes_per_token * block_tokens
        slab = slab_mib * 2**20
        fit = SlabPool(slab, 1).allocate(block, slab // block) if block <= slab else []
        rows.append(
            {
                "model": label,
                "layers": model.layers,
                "kv_heads": model.kv_heads,
                "head_dim": model.head_dim,
                "kv_bytes_per_token": model.kv_bytes_per_token,
                "block_bytes": block,
                "slab_tokens": len(fit) * block_tokens,
            }
        )
        known.append(("KV bytes per token", label, model.kv_bytes_per_token, "bytes"))
        known.append(("bytes of a block of 16 tokens", label, model.kv_bytes_per_token * 16, "bytes"))
    return {"shapes": pl.DataFrame(rows), "headline": headline(known)}
