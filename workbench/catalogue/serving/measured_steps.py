"""Step times of Llama-3.1-8B on an RTX 4090 as the engine takes them, from kernels that were measured one by one."""

import numpy as np
import polars as pl
from scipy.optimize import nnls

from workbench.latency.validation.rtx_steps import rtx_step_rows
from workbench.serving import StepForm

COMPUTE_BOUND = 512
"""Prompt tokens from which on the measured steps grow in proportion to them."""


def measured_steps(kv_tokens: int, step_s: float, request_s: float) -> StepForm:
    """Two rows fitted to whole steps that were added up from measured kernels.

    The row of prompts is fitted to steps of one prompt of 512 tokens or more; that of decoding to steps whose KV fits
    the server. In a step of both the decoding requests add their attention and sampling to the products of the prompt,
    since those are kernels of their own, and share its weights.

    Parameters:
        kv_tokens: that fit the server.
        step_s, request_s: what the engine adds to each step and for each request in it.

    Raises:
        MissingData: the measurements are not on this machine.
    """
    rows = rtx_step_rows()
    prompts = rows.filter((pl.col("phase") == "prefill") & (pl.col("prompt_tokens") >= COMPUTE_BOUND))
    decoding = rows.filter((pl.col("phase") == "decode") & (pl.col("batch") * pl.col("context_tokens") <= kv_tokens))
    p, cached, of_prompts = (
        prompts[name].to_numpy().astype(float) for name in ("prompt_tokens", "cached_tokens", "seconds")
    )
    b, context, of_decoding = (
        decoding[name].to_numpy().astype(float) for name in ("batch", "context_tokens", "seconds")
    )
    fixed_s, token_s, square_s = _fitted([np.ones_like(p), p, 2 * p * cached + p * p], of_prompts)
    weights_s, stored_s, each_s = _fitted([np.ones_like(b), b * context, b], of_decoding)
    compute = (fixed_s + step_s, token_s, square_s, stored_s, each_s + request_s)
    memory = (weights_s + step_s, 0.0, 0.0, stored_s, each_s + request_s)
    errors = [
        np.abs((fixed_s + token_s * p + square_s * (2 * p * cached + p * p)) / of_prompts - 1),
        np.abs((weights_s + stored_s * b * context + each_s * b) / of_decoding - 1),
    ]
    return StepForm(
        compute=compute,
        memory=memory,
        largest_error=float(np.concatenate(errors).max()),
        median_error=float(np.median(np.concatenate(errors))),
        source="two rows fitted to whole steps added up from kernels that LLMServingSim measured on this GPU",
        status="fitted",
    )


def _fitted(columns: list[np.ndarray], seconds: np.ndarray) -> tuple[float, ...]:
    """Coefficients of 0 or more with the least relative errors."""
    table = np.column_stack(columns)
    scale = table.max(axis=0)
    return tuple(map(float, nnls(table / scale / seconds[:, None], np.ones(seconds.size))[0] / scale))
