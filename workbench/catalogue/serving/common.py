"""Parameters that the experiments on start-up and detection share."""

from typing import Annotated

from workbench.catalogue.parameters import Par

Cluster = Annotated[str, Par("Cluster", profile="cluster", source="chosen: hosts with fast network cards")]
Served = Annotated[str, Par("Model", profile="model", source="chosen: fits one accelerator")]
Tp = Annotated[int, Par("Accelerators of an instance", low=1, high=8, step=1, source="chosen")]
Replayed = Annotated[
    str, Par("Trace", trace=True, free=True, source="chosen: its bursts are the hardest of the public ones")
]
Window = Annotated[
    float, Par("Busiest seconds of it", "s", low=60, high=3600, step=60, source="chosen: bursts and lulls")
]
Load = Annotated[
    float, Par("Mean prompt load of all places", low=0.05, high=0.9, step=0.05, source="chosen: room for bursts")
]
Least = Annotated[
    int, Par("Instances that are always there", low=1, high=32, step=1, source="2 in BlitzScale's artifact for 8B")
]
Ttft = Annotated[
    float,
    Par(
        "Promised TTFT", "s", low=0.05, high=30, log=True, status="published", source="OSDI'25 paper §3: 0.45 s for 8B"
    ),
]
Tbt = Annotated[
    float,
    Par(
        "Promised TPOT", "s", low=0.005, high=1, log=True, status="published", source="OSDI'25 paper §3: 0.15 s for 8B"
    ),
]
