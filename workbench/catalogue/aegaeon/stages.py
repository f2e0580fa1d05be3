"""Parameters of a switch in stages, which Figures 7, 8 and 10 share."""

from typing import Annotated

from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.pooling.model.facts import facts
from workbench.pooling.model.stages import SwitchStages, known_stages

PAPER = "SOSP'25 paper §5"

Served = Annotated[str, Par("Model", profile="model", status="published", source=f"{PAPER} Fig 7: LLaMA-13B")]
Tp = Annotated[int, Par("GPUs of an instance", low=1, high=8, status="published", source=f"{PAPER} Fig 7: TP=2")]
Nominal = Annotated[
    float,
    Par(
        "Nominal rate of PCIe",
        "bytes/s",
        low=8e9,
        high=128e9,
        log=True,
        status="published",
        source=f"{PAPER}: PCIe 4.0",
    ),
]
KvTokens = Annotated[
    int,
    Par(
        "Tokens of KV cache that leave, and come", low=0, high=200_000, source="chosen: eight requests of 1,000 tokens"
    ),
]
Collect = Annotated[
    float,
    Par("Garbage collection", "s", low=0, high=10, step=0.5, status="inferred", source=f"{PAPER}: several seconds"),
]


def stages_of(
    context: Context, model: str, tp: int, nominal_bytes_per_s: float, kv_tokens: int, collect_s: float
) -> SwitchStages:
    """The stages of one GPU of an instance, numbers cited."""
    shape, known = context.model(model), facts().stages
    for name, value in known:
        if name not in ("weights_s", "collect_s"):
            context.cite(f"stage: {name}", value)
    fraction = context.cite("share of the nominal rate of pinned copies", facts().variants["paper"].assumed_fraction)
    return known_stages(
        shape.weight_bytes / tp,
        kv_tokens * shape.kv_bytes_per_token / tp,
        fraction * nominal_bytes_per_s,
        collect_s=collect_s,
    )
