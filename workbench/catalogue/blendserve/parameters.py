"""Parameters that the experiments of BlendServe share."""

from typing import Annotated

from workbench.blending.model.interference import facts
from workbench.catalogue.parameters import Par

_PAPER = "ASPLOS'26 paper"
REACHED = facts().reached
_REACHED = f"fitted on {REACHED.source}"

FEEDBACK, BIASED, PRINTED = "density feedback", "Algorithm 3, length-biased mean", "Algorithm 3 as printed"
SCANS = (FEEDBACK, BIASED, PRINTED)

Served = Annotated[str, Par("Model", profile="model", status="published", source=f"{_PAPER} §6.2: Llama-3-8B")]
On = Annotated[
    str, Par("Accelerator", profile="accelerator", status="published", source=f"{_PAPER} §6.2, B.3: A100 SXM 80 GB")
]
SIZES = ("20,000", "40,000", "100,000", "200,000", "400,000")
Requests = Annotated[
    str,
    Par(
        "Requests of a pool",
        choices=SIZES,
        status="published",
        source=f"{_PAPER} §6.2: at least 400,000; appendix A.3 says 40,000, with which the last videos run alone",
    ),
]
Scan = Annotated[
    str,
    Par(
        "How BlendServe fills a batch",
        choices=SCANS,
        source="chosen: the paper does not say how the batch is held to the target; Algorithm 3 is given beside it",
    ),
]
Retain = Annotated[
    bool,
    Par("Unused prefixes stay", source="chosen: without it a random order keeps as little sharing as Fig 9 says"),
]
MemorySlope = Annotated[
    float,
    Par(
        "a: memory time added where compute is longer",
        low=0.0,
        high=1.0,
        step=0.05,
        status="inferred",
        source="hull of NanoFlow Table 3: the step takes max(T_c + a T_m, T_m + b T_c)",
    ),
]
ComputeSlope = Annotated[
    float,
    Par(
        "b: compute time added where memory is longer",
        low=0.0,
        high=1.0,
        step=0.05,
        status="inferred",
        source="hull of NanoFlow Table 3: the step takes max(T_c + a T_m, T_m + b T_c)",
    ),
]
ComputeShare = Annotated[
    float, Par("Share of peak compute reached", low=0.2, high=1.0, step=0.01, status="fitted", source=_REACHED)
]
MemoryShare = Annotated[
    float, Par("Share of peak bandwidth reached", low=0.2, high=1.0, step=0.01, status="fitted", source=_REACHED)
]
OVERLAPS = {
    "interference as measured": (1 / 2, 1 / 3),
    "stronger interference": (0.6, 0.5),
    "one after the other": (1.0, 1.0),
    "perfect": (0.0, 0.0),
}
"""Named slopes (a, b) of max(T_c + a T_m, T_m + b T_c)."""
MEASURED, STRONGER = tuple(OVERLAPS)[:2]
Overlap = Annotated[
    str,
    Par(
        "How compute and memory work overlap",
        choices=tuple(OVERLAPS),
        status="inferred",
        source="hull of NanoFlow Table 3: the step takes max(T_c + T_m / 2, T_m + T_c / 3)",
    ),
]
Video = Annotated[
    int,
    Par(
        "Mean video",
        "tokens",
        low=1_500,
        high=40_000,
        log=True,
        step=0.1,
        status="published",
        source=f"{_PAPER} appendix A.3: normalised to 16K; with shorter ones a small pool holds many",
    ),
]
VIDEO = 16_000
Main = Annotated[
    str,
    Par(
        "Compute source",
        status="fitted",
        source="a length model calibrated on Fig 2 and Table 4, or the name of a trace whose lengths are drawn",
    ),
]
MainShared = Annotated[
    int,
    Par(
        "System prompt of the compute source",
        "tokens",
        low=0,
        high=12,
        status="fitted",
        source="5 tokens make BurstGPT's printed sharing ratio of 0.02, if all its requests share one prefix",
    ),
]
