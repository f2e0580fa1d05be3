"""How far whole layers (without attention) lie from measurements, per GPU, model, TP and size."""

import numpy as np
import polars as pl

from workbench.latency.fitted_kernels import SMALL_KERNELS, SMALLEST_KERNEL
from workbench.latency.kernel_coefficients import kernel_coefficients
from workbench.latency.rates import achievable_rates, peak_rates
from workbench.latency.validation.errors import TOKEN_CLASSES, errors_by_class, size_class, with_targets
from workbench.latency.validation.kernel_models import gemm_seconds
from workbench.latency.validation.layers import LAYERS, layer_rows
from workbench.latency.validation.reasons import with_reasons
from workbench.latency.validation.sweeps import RTX
from workbench.latency.work import work_of
from workbench.profiles import accelerator
from workbench.profiles import model as find_model


def layer_errors() -> pl.DataFrame:
    """All layers: accelerator, model, tp, size, rows, median_s, errors of both models, targets met.

    *Fitted*: coefficients of matrix products from the half that is not held out. *Roofline*: achievable rates in the
    same sweep and one launch constant. *Transferred*: coefficients fitted to vLLM's sweep of the same accelerator by
    another project, on another engine; NaN where there is none. Norms, residual sums, rotary embedding and activation
    function are their bytes at the achievable memory rate and five smallest kernels.

    Raises:
        MissingData: the measurements are not on this machine.
    """
    return with_reasons(with_targets(pl.concat([one_layer_errors(gpu, model) for gpu, model in LAYERS])))


def one_layer_errors(gpu: str, model: str) -> pl.DataFrame:
    """One accelerator and model."""
    rows = (
        layer_predictions(gpu, model)
        .rename({"layer_s": "seconds"})
        .with_columns(tp=pl.col("tp").cast(pl.String), size=size_class(pl.col("tokens"), TOKEN_CLASSES, "tokens"))
    )
    table = errors_by_class(rows, ["tp", "size"], ("fitted", "roofline", "transferred"))
    named = table.with_columns(accelerator=pl.lit(gpu), model=pl.lit(model))
    return named.select("accelerator", "model", pl.exclude("accelerator", "model"))


def layer_predictions(gpu: str, model: str) -> pl.DataFrame:
    """`layer_rows` with predicted seconds of the layer, `fitted`, `roofline` and `transferred`.

    Those of its matrix products alone are `fitted_gemms`, `roofline_gemms` and `transferred_gemms`.
    """
    device, table = accelerator(gpu), kernel_coefficients()
    sweep = "llmservingsim" if gpu == RTX else "vidur"
    launch = table.require("launch", gpu, dtype="bf16", sweep=sweep)
    peaks, rates = peak_rates(device), launch.over(achievable_rates(device))
    ways = {
        "fitted": (peaks, table.require("gemm", gpu, dtype="bf16", sweep=sweep)),
        "roofline": (rates, launch),
        "transferred": (peaks, table.find("gemm", gpu, dtype="bf16", sweep="vllm")),
    }
    small_s = SMALL_KERNELS * float(device.achievable.kernel_s or SMALLEST_KERNEL)
    parts = []
    for (tp,), part in layer_rows(gpu, model).group_by(["tp"], maintain_order=True):
        work, tokens = work_of(find_model(model), tp), part["tokens"].to_numpy()
        touched = small_s + tokens * work.elementwise_bytes_per_token / rates.memory_bytes_per_s
        for name, (speeds, fit) in ways.items():
            gemms = np.full(part.height, np.nan if fit is None else 0.0)
            for matrix in work.matrices if fit is not None else ():
                shape = {"rows": pl.lit(float(matrix.rows)), "columns": pl.lit(float(matrix.columns))}
                gemms += gemm_seconds(part.select("tokens", **shape), speeds, fit, "bf16")
            part = part.with_columns(pl.Series(f"{name}_gemms", gemms), pl.Series(name, gemms + touched))
        parts.append(part)
    return pl.concat(parts)
