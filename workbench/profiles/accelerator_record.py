"""One accelerator: what its data sheet says, and beside it what has been measured."""

from typing import Literal

from pydantic import Field, model_validator

from workbench.errors import InputError, UnknownName
from workbench.profiles.quantities import (
    Alternates,
    Bytes,
    BytesPerSecond,
    FlopsPerSecond,
    Seconds,
    Slope,
    alternate_value,
    sources_of,
)
from workbench.records import Quantity, Record, Source

Which = Literal["nominal", "achievable"]


class Speeds(Record):
    """The four rates of an accelerator, links per direction; None where there is no such path or no number.

    Attributes:
        flops_per_s: dense matrix products in bf16 or fp16, without sparsity.
        memory_bytes_per_s: its own memory (HBM, GDDR).
        scale_up_bytes_per_s: to its neighbours over the scale-up link (NVLink), all links together, per direction.
        host_bytes_per_s: to and from host memory (PCIe), per direction.
    """

    flops_per_s: FlopsPerSecond | None = None
    memory_bytes_per_s: BytesPerSecond | None = None
    scale_up_bytes_per_s: BytesPerSecond | None = None
    host_bytes_per_s: BytesPerSecond | None = None


class AchievableSpeeds(Speeds):
    """What software gets: large matrix products, streaming of weights at one token, large copies; and some finer cases.

    Attributes:
        flops_per_s_1024_tokens: matrix products with 1,024 rows.
        prefill_attention_flops_per_s: causal attention over a prompt.
        decode_attention_bytes_per_s: attention of a decode step over at least 0.5 GB of KV cache.
        kernel_s: the smallest kernel.
        scale_up_latency_s: a small message to a neighbour in the same host.
        all_gather_bytes_per_s, all_reduce_bytes_per_s: bus bandwidth of large collectives over 8 accelerators.
        all_gather_latency_s, all_reduce_latency_s: small collectives over 8 accelerators.
        overlap_memory_slope, overlap_compute_slope: a and b, from 0 to 1, with which matrix products that take T_c and
            reading of memory that takes T_m take max(T_c + a T_m, T_m + b T_c) beside each other; both or neither.
    """

    flops_per_s_1024_tokens: FlopsPerSecond | None = None
    prefill_attention_flops_per_s: FlopsPerSecond | None = None
    decode_attention_bytes_per_s: BytesPerSecond | None = None
    kernel_s: Seconds | None = None
    scale_up_latency_s: Seconds | None = None
    all_gather_bytes_per_s: BytesPerSecond | None = None
    all_gather_latency_s: Seconds | None = None
    all_reduce_bytes_per_s: BytesPerSecond | None = None
    all_reduce_latency_s: Seconds | None = None
    overlap_memory_slope: Slope | None = None
    overlap_compute_slope: Slope | None = None

    @model_validator(mode="after")
    def _overlap_is_whole(self):
        slopes = (self.overlap_memory_slope, self.overlap_compute_slope)
        if (slopes[0] is None) != (slopes[1] is None):
            raise ValueError("one of overlap_memory_slope and overlap_compute_slope is missing; give both or neither")
        if any(slope is not None and float(slope) > 1 for slope in slopes):
            raise ValueError("a slope of overlap is above 1; give numbers from 0 to 1")
        return self


class Accelerator(Record):
    """One kind of accelerator (a GPU, a slice of one, or a CPU taken as one).

    Attributes:
        name: the profile's name, such as "h100-80gb-sxm".
        label: what people call it.
        aliases: other names under which it is found.
        memory_bytes: its own memory.
        nominal: rates of the data sheet.
        achievable: rates that were measured, or inferred from a relative's measurement; the status tells which.
        alternates: what single papers, artifacts and data sheets say instead.
        note: anything a reader should know.
    """

    name: str = Field(min_length=1)
    label: str = ""
    aliases: tuple[str, ...] = ()
    memory_bytes: Bytes
    nominal: Speeds = Speeds()
    achievable: AchievableSpeeds = AchievableSpeeds()
    alternates: Alternates = ()
    note: str = ""

    @model_validator(mode="after")
    def _can_compute(self):
        for name in ("flops_per_s", "memory_bytes_per_s"):
            if getattr(self.nominal, name) is None and getattr(self.achievable, name) is None:
                raise ValueError(f"no {name} is given; add it under [nominal] or [achievable]")
        return self

    def speed(self, quantity: str, which: Which = "achievable") -> Quantity:
        """One rate or time of this accelerator, as a number with its source.

        Parameters:
            quantity: a field of `Speeds` or `AchievableSpeeds`, such as "memory_bytes_per_s".
            which: "nominal" or "achievable"; where only the other is known, that one is given (its status says so).

        Raises:
            InputError: neither is known.
        """
        if quantity not in AchievableSpeeds.model_fields:
            raise UnknownName("rate of an accelerator", quantity, AchievableSpeeds.model_fields)
        order = (self.achievable, self.nominal) if which == "achievable" else (self.nominal, self.achievable)
        for speeds in order:
            if (found := getattr(speeds, quantity, None)) is not None:
                return found
        raise InputError(f"accelerator {self.name} has no {quantity}", "choose another accelerator, or add the number")

    def alternate(self, preset: str, quantity: str) -> Quantity:
        """What one paper or artifact says instead, as a number with its source."""
        return alternate_value(f"accelerator {self.name}", self.alternates, preset, quantity)

    def under(self, preset: str) -> "Accelerator":
        """This accelerator as one paper or artifact describes it: its alternates put in place of the nominal numbers.

        The achievable number falls away for what is replaced (it belonged to the other nominal one). Quantities
        that are no field of an accelerator stay alternates.
        """
        rows = [row for row in self.alternates if row.preset == preset]
        if not rows:
            known = {row.preset for row in self.alternates}
            raise UnknownName(f"preset of accelerator {self.name}", preset, known)
        given = {row.quantity: row.value for row in rows if row.quantity in Speeds.model_fields}
        memory = {row.quantity: row.value for row in rows if row.quantity == "memory_bytes"}
        return self.model_copy(
            update={
                **memory,
                "nominal": self.nominal.model_copy(update=given),
                "achievable": self.achievable.model_copy(update=dict.fromkeys(given)),
            }
        )

    def sources(self, alternates: bool = False) -> list[Source]:
        """Every number with where it comes from; on request also what single papers say instead."""
        return sources_of(self, alternates)
