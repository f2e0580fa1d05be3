"""Lay the numbers of a roofline out as the kernels take them."""

import math
from collections.abc import Sequence

from workbench.latency.messages import AllReduce
from workbench.latency.overheads import Overheads
from workbench.latency.rates import FEW_TOKENS, MANY_TOKENS, Rates, number
from workbench.latency.work import Work
from workbench.records import Source


def roofline_vector(
    work: Work, rates: Rates, messages: AllReduce, overheads: Overheads, layer_s: float, *, decode: Sequence[float],
    prefill: Sequence[float], gemms: Sequence[Sequence[float]], exponent: float | None = None, quantise_s: float = 0.0,
) -> tuple[float, ...]:  # fmt: skip
    """The numbers of `kernels.layout`, in its order.

    Parameters:
        work, rates, messages, overheads: what is done, how fast elementwise work goes, all-reduces, overheads.
        layer_s: overhead of a layer.
        decode, prefill: numbers of the two attention kernels of a layer.
        gemms: for each matrix of a layer and for the head (s/token of arithmetic, s of weights, s/token of
            activations, s of launch).
        exponent: how products overlap arithmetic and bytes; None for a sharp roofline with the rates of two sizes.
        quantise_s: seconds a token and layer for turning activations into a narrow format.
    """
    message_s = 0.0 if math.isinf(messages.bytes_per_s) else work.message_bytes_per_token / messages.bytes_per_s
    return (
        float(work.layers),
        float(overheads.step_s),
        layer_s,
        float(overheads.request_s),
        work.elementwise_bytes_per_token / rates.memory_bytes_per_s + quantise_s,
        2.0 * messages.alpha_s,
        message_s,
        FEW_TOKENS,
        MANY_TOKENS,
        rates.slowdown_at_few if exponent is None else 1.0,
        exponent or 0.0,
        *decode,
        *prefill,
        *(value for gemm in gemms for value in gemm),
    )


def overhead_rows(overheads: Overheads) -> list[Source]:
    """The three overheads with where they come from."""
    named = (("step", overheads.step_s), ("layer", overheads.layer_s), ("request", overheads.request_s))
    return [number(f"overhead a {what}", value) for what, value in named]
