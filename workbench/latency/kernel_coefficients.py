"""Coefficients of single kernels on single accelerators, fitted to measured sweeps: `data/latency/kernels.toml`."""

import functools
from typing import Annotated

from pydantic import Field

from workbench.errors import UserError
from workbench.latency.rates import Rates
from workbench.paths import facts_folder
from workbench.profiles.checking import build
from workbench.profiles.toml_reading import read_toml, sources_in
from workbench.records import Record, Status

Share = Annotated[float, Field(gt=0, le=1)]
NotNegative = Annotated[float, Field(ge=0)]


class KernelRow(Record):
    """What every row of the file has.

    Attributes:
        accelerator: its name in the profiles.
        sweep: whose measurements: "vllm" (AIConfigurator), "vidur" or "llmservingsim"; where an accelerator has several
            the first row is the one that step times use.
        status, source: how the coefficients are known.
    """

    accelerator: str
    sweep: str
    status: Status
    source: str = Field(min_length=9)


class GemmCoefficients(KernelRow):
    """Matrix product of m tokens with k x n weights.

    Seconds = launch + k·row + m·k·quantise + (compute^p + memory^p)^(1/p).

    Attributes:
        dtype: number format of the weights.
        compute_fraction, memory_fraction: of the nominal rates.
        launch_s, launch_s_per_row: start and end of the kernel, and what each of the k rows adds to it.
        exponent: p, how well computing and moving overlap (1 not at all, infinity perfectly).
        quantise_s_per_number: turning one activation into fp8, 0 in 16-bit formats.
    """

    dtype: str
    compute_fraction: Share
    memory_fraction: Share
    launch_s: NotNegative
    launch_s_per_row: NotNegative
    exponent: Annotated[float, Field(ge=1)]
    quantise_s_per_number: NotNegative = 0.0


class DecodeAttentionCoefficients(KernelRow):
    """Decode attention of a layer.

    Seconds = launch + [context > 128]·split + max(requests·KV heads·head, KV bytes/rate).

    Attributes:
        grouped: whether several query heads share a KV head (another kernel runs then).
        launch_s, split_s: fixed cost, and that of the second pass over caches that were split.
        s_per_kv_head: issuing the work of one KV head of one request.
        memory_fraction: of the nominal memory rate.
        cached_memory_fraction: the same where all keys and values fit the level-2 cache; above 1 is no mistake there.
    """

    grouped: bool
    launch_s: NotNegative
    split_s: NotNegative
    s_per_kv_head: NotNegative
    memory_fraction: Share
    cached_memory_fraction: Annotated[float, Field(gt=0)]


class PrefillAttentionCoefficients(KernelRow):
    """Causal attention of a layer over prompts, seconds = launch + prompts·heads·head + flops/rate + bytes/rate.

    Attributes:
        launch_s: fixed cost.
        s_per_head: issuing the work of one query head of one prompt.
        compute_fraction: of the nominal matrix rate.
        memory_fraction, cached_memory_fraction: of the nominal memory rate, as in decode attention; they also stand
            for softmax and tile edges, so they are well below those of a plain copy.
    """

    launch_s: NotNegative
    s_per_head: NotNegative
    compute_fraction: Share
    memory_fraction: Share
    cached_memory_fraction: Annotated[float, Field(gt=0)]


class LaunchConstants(KernelRow):
    """The one constant that a roofline of achievable rates gets beside it, for each kind of kernel that was swept.

    Attributes:
        dtype: number format of the weights.
        gemm_s, decode_attention_s, prefill_attention_s: fixed cost of each kind.
        flops_per_s, flops_per_s_1024_tokens, memory_bytes_per_s: achievable rates in that sweep, where they are not
            those of the accelerator's profile.
    """

    dtype: str
    gemm_s: NotNegative
    decode_attention_s: NotNegative | None = None
    prefill_attention_s: NotNegative | None = None
    flops_per_s: Annotated[float, Field(gt=0)] | None = None
    flops_per_s_1024_tokens: Annotated[float, Field(gt=0)] | None = None
    memory_bytes_per_s: Annotated[float, Field(gt=0)] | None = None

    def over(self, rates: Rates) -> Rates:
        """The rates with this sweep's own in their place."""
        if self.flops_per_s is None:
            return rates
        return rates.model_copy(
            update={
                "flops_per_s": self.flops_per_s,
                "slowdown_at_few": self.flops_per_s / self.flops_per_s_1024_tokens,
                "memory_bytes_per_s": self.memory_bytes_per_s,
            }
        )


class KernelCoefficients(Record):
    """The whole file."""

    gemm: tuple[GemmCoefficients, ...] = ()
    decode_attention: tuple[DecodeAttentionCoefficients, ...] = ()
    prefill_attention: tuple[PrefillAttentionCoefficients, ...] = ()
    launch: tuple[LaunchConstants, ...] = ()

    def find(self, kind: str, accelerator: str, **wanted):
        """The row of one table for an accelerator, or None.

        Parameters:
            kind: "gemm", "decode_attention", "prefill_attention" or "launch".
            accelerator: its name.
            wanted: further fields, such as dtype="bf16" or grouped=True.
        """
        for row in getattr(self, kind):
            if row.accelerator == accelerator and all(getattr(row, name) == value for name, value in wanted.items()):
                return row
        return None

    def require(self, kind: str, accelerator: str, **wanted):
        """As `find`, but a missing row is a `UserError` that lists the accelerators which have one."""
        if (row := self.find(kind, accelerator, **wanted)) is not None:
            return row
        known = sorted({row.accelerator for row in getattr(self, kind)})
        which = "".join(f" ({name} {value})" for name, value in wanted.items())
        raise UserError(
            f"No measured sweep of {kind.replace('_', ' ')}{which} was found for {accelerator}; "
            f"use source='roofline', or one of {', '.join(known)}."
        )


def kernel_coefficients() -> KernelCoefficients:
    """All fitted kernel coefficients."""
    return _read(facts_folder() / "latency" / "kernels.toml")


@functools.cache
def _read(path) -> KernelCoefficients:
    tables = read_toml(path)
    sources = sources_in(tables, path)
    rows = {
        kind: [row | {"source": sources.get(row.get("source"), row.get("source", ""))} for row in tables.get(kind, ())]
        for kind in KernelCoefficients.model_fields
    }
    return build(KernelCoefficients, rows, file=path)
