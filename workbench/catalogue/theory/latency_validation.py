"""Step times beside other people's measurements of kernels and layers: fitted coefficients, and a roofline."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft, against_measurements
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.errors import MissingData
from workbench.latency.validation import kernel_errors, layer_errors, recorded_statistics
from workbench.results import Reading, Verdict, read_against

TARGETS = {"fitted": 0.10, "roofline": 0.15}
KERNELS = ("matrix product", "decode attention", "prompt attention")
ACCELERATORS = ("a100-80gb-sxm", "h100-80gb-sxm", "h200-141gb-sxm", "l40s-48gb", "rtx-4090-24gb")
WHOLE = (pl.col("shape") == "all") & (pl.col("size") == "all")
EVERY_TP = (pl.col("tp") == "all") & (pl.col("size") == "all")


def measured_or_recorded(context: Context, kind: str, measure: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """Error statistics computed anew from the measurements, or as recorded where these are not on this machine."""
    try:
        table = measure()
    except MissingData as missing:
        table = recorded_statistics(kind)
        about = f"as recorded in the project's facts; {missing}"
        context.cite(f"{kind}: errors", "recorded", "", "measured", about)
        return table
    context.cite(f"{kind}: errors", "computed anew", "", "measured", "measurements under WORKBENCH_DATA")
    return table


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["kernels"].filter(WHOLE & (pl.col("format") == "bf16"))
    parts = []
    for way, target in TARGETS.items():
        error = table[f"{way}_error"]
        good = int((error <= target).sum())
        parts.append(f"{way} {error.median():.1%} ({good} of {len(table)} within {target:.0%})")
    return (
        "Median error of a kernel on rows nothing was fitted to, over GPUs and kernels in bf16: "
        f"{' and '.join(parts)}; where it is more the verdicts say why."
    )


def _judge(draft: Draft) -> list[Verdict]:
    found = []
    for row in draft.tables["kernels"].filter(WHOLE).to_dicts():
        classes = draft.tables["kernels"].filter(
            (pl.col("accelerator") == row["accelerator"])
            & (pl.col("kernel") == row["kernel"])
            & (pl.col("format") == row["format"])
            & (pl.col("shape") != "all")
            & (pl.col("size") == "all")
        )
        name = f"{row['accelerator']}, {row['kernel']} in {row['format']}"
        found += [_verdict(draft, row, name, way, classes) for way in TARGETS]
    for row in draft.tables["layers"].filter(EVERY_TP).to_dicts():
        name = f"{row['accelerator']}, layers of {row['model']}"
        found += [_verdict(draft, row, name, way, None) for way in TARGETS]
    return found


def _verdict(draft: Draft, row: dict[str, Any], name: str, way: str, classes: pl.DataFrame | None) -> Verdict:
    target, error = TARGETS[way], row[f"{way}_error"]
    reading: Reading = read_against(error, None, 0.0, target)
    why = f"signed {row[f'{way}_signed']:+.1%}, over {row['rows']:,} rows that were held out"
    if reading == "reproduced":
        reading, why = "fitted", f"rates or coefficients come from the other rows of the same measurements; {why}"
    else:
        why += ". Assumed here: one launch time, one rate and one corner for all shapes and sizes"
        if row["why"]:
            why += f". {row['why'].rstrip('.')}"
        if classes is not None and len(classes) > 1:
            parts = [f"{item['shape']} {item[f'{way}_error']:.1%}" for item in classes.to_dicts()]
            why += f"; by shape the error is {', '.join(parts)}"
    return against_measurements(draft, f"{name}: median error, {way}", "measured times", error, target, reading, why)


@experiment(
    "theory/latency-validation",
    title="Are the step times true?",
    question="How far are fitted coefficients and a roofline from measured kernels and layers, and where do they fail?",
    backends=("analytic",),
    seconds={"analytic": 2.5},
    draw="latency.validation",
    panels=("kernels", "sizes", "layers"),
    say=_say,
    judges=(_judge,),
)
def latency_validation(
    context: Context,
    *,
    accelerator: Annotated[str, Par("Sizes: accelerator", choices=ACCELERATORS)] = "h100-80gb-sxm",
    kernel: Annotated[str, Par("Sizes: kernel", choices=KERNELS)] = "matrix product",
    format: Annotated[str, Par("Number format", choices=("bf16", "fp8"))] = "bf16",
) -> dict[str, pl.DataFrame]:
    """Median relative errors, absolute and signed, per accelerator, kernel, shape and size, and per layer and TP.

    Every second size was fitted to; errors are of the others. *fitted*: coefficients of the kernel; *roofline*: rates
    of the accelerator's profile and a launch time.
    """
    kernels = measured_or_recorded(context, "kernels", kernel_errors)
    layers = measured_or_recorded(context, "layers", layer_errors).with_columns(pl.col("tp").cast(pl.String))
    known = []
    for row in kernels.filter(WHOLE).to_dicts():
        for way in TARGETS:
            series = f"median error, {way}, {row['kernel']} in {row['format']}"
            known.append((series, row["accelerator"], row[f"{way}_error"], "1"))
    return {"kernels": kernels, "layers": layers, "headline": headline(known)}
