"""For the project's keepers: fit all coefficients anew and write them and the statistics into the facts.

Run as `WORKBENCH_DATA=… python -m workbench.latency.validation.recording`.
"""

import json
import math
from pathlib import Path
from typing import Any

from workbench.latency.validation.anchors import anchor_errors
from workbench.latency.validation.collectives import NCCL, SOURCE, fit_all_reduce
from workbench.latency.validation.files import AICONFIGURATOR, LLMSERVINGSIM, VIDUR
from workbench.latency.validation.kernel_errors import kernel_errors
from workbench.latency.validation.kernel_fitting import (
    fit_decode_attention,
    fit_gemm,
    fit_launch,
    fit_prefill_attention,
)
from workbench.latency.validation.layer_errors import layer_errors
from workbench.latency.validation.servers import SOURCE as SERVERS
from workbench.latency.validation.sweeps import (
    GPUS,
    LAYER_SWEEPS,
    RTX,
    decode_attention_rows,
    gemm_rows,
    prefill_attention_rows,
)
from workbench.latency.validation.tpot import tpot_errors
from workbench.paths import facts_folder, write_atomic
from workbench.profiles.toml_writing import toml_text
from workbench.records import Record

FP8 = ("h100-80gb-sxm", "h200-141gb-sxm", "l40s-48gb")
SOURCES = {
    "vllm": f"{AICONFIGURATOR}: least mean |log error| on the half of the shapes that is not held out",
    "vidur": f"{VIDUR}: Llama-2-7B at TP 1 and 4 (other TP and other models are held out)",
    "llmservingsim": f"{LLMSERVINGSIM}: RTX 4090, Llama-3.1-8B, every second size (the others are held out)",
}


def record_kernels() -> Path:
    """Fit every kernel of every accelerator and write `data/latency/kernels.toml`."""
    tables: dict[str, Any] = {kind: [] for kind in ("gemm", "decode_attention", "prefill_attention", "launch")}
    for gpu, sweep in (*((gpu, "vllm") for gpu in GPUS), *LAYER_SWEEPS):
        about = {"accelerator": gpu, "sweep": sweep, "status": "fitted", "source": SOURCES[sweep]}
        for dtype in ("bf16", "fp8") if gpu in FP8 and sweep == "vllm" else ("bf16",):
            tables["gemm"].append(_row(fit_gemm(gpu, gemm_rows(gpu, dtype, sweep), dtype, about), sweep))
            attention = dtype == "bf16" and sweep != "vidur"  # which left attention out
            tables["launch"].append(_row(fit_launch(gpu, about, dtype, attention), sweep))
        if sweep == "vidur":
            continue
        decode, prefill = decode_attention_rows(gpu), prefill_attention_rows(gpu)
        for grouped in (True, False) if gpu != RTX else (True,):
            tables["decode_attention"].append(_row(fit_decode_attention(gpu, decode, grouped, about), sweep))
        tables["prefill_attention"].append(_row(fit_prefill_attention(gpu, prefill, about), sweep))
    tables["sources"] = SOURCES
    return write_atomic(facts_folder() / "latency" / "kernels.toml", toml_text(tables))


def record_collectives() -> Path:
    """Fit the all-reduces and write `data/latency/collectives.toml`."""
    rows = [_row(fit_all_reduce(gpu, size), "nccl") for gpu, (_, sizes) in NCCL.items() for size in sizes]
    tables = {"all_reduce": rows, "sources": {"nccl": SOURCE}}
    return write_atomic(facts_folder() / "latency" / "collectives.toml", toml_text(tables))


def _row(record: Record, source: str) -> dict[str, Any]:
    """Four digits are more than such a fit knows."""
    numbers = {
        name: float(f"{value:.4g}") if isinstance(value, float) else value
        for name, value in record.model_dump(exclude_none=True).items()
    }
    return numbers | {"source": source}


def record_statistics() -> Path:
    """Work out all errors anew and write `data/latency/validation.toml`."""
    tables = {
        "kernels": (kernel_errors(), "held-out half of the kernel sweeps; sources in kernels.toml"),
        "layers": (layer_errors(), "held-out layers of Vidur and LLMServingSim; sources in kernels.toml"),
        "servers": (tpot_errors(), SERVERS),
        "anchors": (anchor_errors(), "Splitwise, data/perf_model.csv, MIT licence; DistServe, Apache-2.0 licence"),
    }
    lines = ["# Errors of step times against measurements, as relative errors (predicted / measured - 1): written by"]
    lines += ["# workbench.latency.validation.recording, read by workbench.latency.validation.recorded."]
    lines += ["# No coefficient was fitted to a held-out row. Two things were not blind: which terms a formula has was"]
    lines += [
        "# chosen with held-out errors in view, and the achievable rates of the profiles are medians of whole sweeps.",
        "",
    ]
    for kind, (table, source) in tables.items():
        columns = ", ".join(json.dumps(name) for name in table.columns)
        rows = ["    [" + ", ".join(map(_cell, row)) + "]," for row in table.iter_rows()]
        lines += [f"[{kind}]", f"source = {json.dumps(source)}", f"columns = [{columns}]", "rows = [", *rows, "]", ""]
    return write_atomic(facts_folder() / "latency" / "validation.toml", "\n".join(lines).rstrip() + "\n")


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return '""'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(float(f"{value:.4g}"))
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    for written in (record_collectives(), record_kernels(), record_statistics()):
        print(written)
