"""The terms of a calibrated step time: what a step costs at data-sheet peaks, to be multiplied by what is fitted."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from workbench.latency.rates import peak_rates
from workbench.latency.traits import arithmetic_speedup
from workbench.latency.work import work_of
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.model_record import Model
from workbench.records import Record

PREFILL_TERMS = ("constant_s", "matrix_products", "attention")
DECODE_TERMS = ("constant_s", "weights", "kv_cache", "request_s")
TERMS = {"prefill": PREFILL_TERMS, "decode": DECODE_TERMS}


class Peaks(Record):
    """Seconds at data-sheet peaks on one accelerator of a group: what one fitted multiple stands for.

    Attributes:
        token_s, squared_token_s: matrix products of a prompt token; attention of a squared token, half of it masked.
        weights_s, context_token_s: reading all weights; reading one cached token.
    """

    token_s: float
    squared_token_s: float
    weights_s: float
    context_token_s: float


def peaks_of(model: Model, accelerator: Accelerator, tp: int) -> Peaks:
    """What the terms are at data-sheet peaks."""
    work, rates = work_of(model, tp), peak_rates(accelerator)
    flops_per_s = rates.flops_per_s * float(arithmetic_speedup(accelerator, model.weight_dtype))
    return Peaks(
        token_s=work.flops_per_token / flops_per_s,
        squared_token_s=work.pair_flops / 2 / rates.flops_per_s,
        weights_s=work.weight_bytes / rates.memory_bytes_per_s,
        context_token_s=work.context_bytes / rates.memory_bytes_per_s,
    )


def term_columns(phase: str, rows: pl.DataFrame, model: Model, accelerator: Accelerator) -> np.ndarray:
    """Seconds of every term of `TERMS` for every row, float64 (rows, terms).

    Prompts: 1, products of their tokens but never less than reading the weights, attention of (2·tokens·cached +
    tokens²) summed over prompts. Decode steps: 1, weights, KV cache of all requests, requests.
    """
    peaks = {tp: peaks_of(model, accelerator, tp) for tp in sorted({int(tp) for tp in rows["tp"]})}
    at = [peaks[int(tp)] for tp in rows["tp"]]
    batch = rows["batch"].to_numpy()
    if phase == "prefill":
        tokens, cached = rows["prompt_tokens"].to_numpy(), rows["cached_tokens"].to_numpy()
        squares = batch * (tokens**2 + 2 * tokens * cached)
        return np.column_stack(
            [
                np.ones(len(at)),
                np.maximum(batch * tokens * _each(at, "token_s"), _each(at, "weights_s")),
                squares * _each(at, "squared_token_s"),
            ]
        )
    context = batch * rows["context_tokens"].to_numpy()
    return np.column_stack([np.ones(len(at)), _each(at, "weights_s"), context * _each(at, "context_token_s"), batch])


def linear_coefficients(
    prefill: Sequence[float] | None, decode: Sequence[float] | None, peaks: Peaks
) -> tuple[float, ...]:
    """Fitted multiples as the numbers of the linear kernel; NaN for a phase that was not fitted."""
    nothing = (float("nan"),) * 3
    first = nothing if prefill is None else (
        prefill[0], prefill[1] * peaks.token_s, prefill[2] * peaks.squared_token_s,
    )  # fmt: skip
    second = nothing if decode is None else (
        decode[0] + decode[1] * peaks.weights_s, decode[2] * peaks.context_token_s, decode[3],
    )  # fmt: skip
    least = float("nan") if prefill is None else prefill[1] * peaks.weights_s
    return (*first, *second, least)


def _each(peaks: Sequence[Peaks], name: str) -> np.ndarray:
    return np.array([getattr(one, name) for one in peaks])
