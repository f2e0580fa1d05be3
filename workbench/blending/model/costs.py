"""What a token costs: arithmetic, KV bytes, rates, the pool; and how long a step of an engine takes."""

from typing import NamedTuple

import numpy as np
from pydantic import Field

from workbench.blending.kernels.seconds import step_seconds
from workbench.blending.policy import INTERFERENCE, SLOPES, overlapped_s
from workbench.errors import InputError
from workbench.profiles import Accelerator, Model
from workbench.records import NotNegative, Positive, Record, positive

BUFFER_BYTES = 4e9
"""Activations and buffers of an accelerator: BlendServe Fig 6 takes 20 GB for these and the 16 GB of Llama-3-8B."""
PROMPT_PAIRS = 4.0
"""FLOP a squared prompt token, hidden number and layer: two products over the whole square (BlendServe §4.1)."""


class Costs(Record):
    """One model on a tensor-parallel group of accelerators, in FLOP and bytes and their rates.

    Attributes:
        flops_per_token: dense arithmetic of a token, 2 P.
        pair_flops: attention over a prompt of p tokens takes p^2 times this, 4 H L.
        kv_bytes_per_token: keys and values of a token, read once by every later token.
        weight_bytes: all weights, read once a step.
        flops_per_s, memory_bytes_per_s: of the whole group.
        pool_bytes: KV memory of the whole group.
        network_s_per_token: collectives of a token's dense work; 0 for one accelerator.
    """

    flops_per_token: Positive
    pair_flops: NotNegative
    kv_bytes_per_token: Positive
    weight_bytes: NotNegative
    flops_per_s: Positive
    memory_bytes_per_s: Positive
    pool_bytes: Positive
    network_s_per_token: NotNegative = 0.0

    @property
    def token_s(self) -> float:
        """Seconds of a token's dense arithmetic."""
        return self.flops_per_token / self.flops_per_s

    @property
    def kv_token_s(self) -> float:
        """Seconds to read the keys and values of one token."""
        return self.kv_bytes_per_token / self.memory_bytes_per_s

    @property
    def balance(self) -> float:
        """KV tokens whose reading takes as long as the arithmetic of one token."""
        return self.token_s / self.kv_token_s

    @property
    def pool_tokens(self) -> int:
        """KV tokens that fit in the pool."""
        return int(self.pool_bytes // self.kv_bytes_per_token)

    @property
    def attention(self) -> float:
        """Attention over a squared prompt token, over the dense arithmetic of a token."""
        return self.pair_flops / self.flops_per_token

    def at(self, compute_share: float, memory_share: float) -> "Costs":
        """The same with a share of both rates, as kernels reach it."""
        return self.model_copy(
            update={
                "flops_per_s": self.flops_per_s * compute_share,
                "memory_bytes_per_s": self.memory_bytes_per_s * memory_share,
            }
        )


def costs_of(model: Model, accelerator: Accelerator, tp: int = 1, pool_bytes: float | None = None) -> Costs:
    """Costs at the data sheet's rates, as BlendServe counts them.

    Parameters:
        model, accelerator: their shapes and nominal rates.
        tp: accelerators that share every layer.
        pool_bytes: KV memory of the group; by default what weights and buffers leave.

    Collectives: two all-gathers and one all-reduce, or two all-reduces, a layer move 4 (n - 1) hidden numbers a token
    in all, over n links (NanoFlow §3). Density over one model scales as P / (H_kv L).

    Raises:
        InputError: tp does not divide the KV heads, or nothing is left for the KV pool.
    """
    if isinstance(tp, bool) or not isinstance(tp, int) or tp < 1 or model.kv_heads % tp:
        raise InputError(
            f"tp = {tp} does not divide the {model.kv_heads} KV heads of {model.name}", "choose a divisor", field="tp"
        )
    memory = float(accelerator.memory_bytes) * tp
    left = memory - model.weight_bytes - BUFFER_BYTES * tp if pool_bytes is None else positive(pool_bytes, "pool_bytes")
    if left <= 0:
        raise InputError(
            f"{model.name} leaves no KV memory on {tp} x {accelerator.name}",
            "use more accelerators or a smaller model",
            field="tp",
        )
    network = 0.0
    if tp > 1:
        number_bytes = model.activation_bytes_per_token / model.hidden
        moved = 4 * (tp - 1) * model.hidden * number_bytes * model.layers
        network = moved / (tp * float(accelerator.speed("scale_up_bytes_per_s", "nominal")))
    return Costs(
        flops_per_token=2.0 * model.active_parameters,
        pair_flops=PROMPT_PAIRS * model.hidden * model.layers,
        kv_bytes_per_token=model.kv_bytes_per_token,
        weight_bytes=model.weight_bytes,
        flops_per_s=tp * float(accelerator.speed("flops_per_s", "nominal")),
        memory_bytes_per_s=tp * float(accelerator.speed("memory_bytes_per_s", "nominal")),
        pool_bytes=left,
        network_s_per_token=network,
    )


class Engine(Record):
    """How steps of a run become seconds.

    Attributes:
        costs: at the rates that kernels reach.
        memory_slope, compute_slope: a and b of max(T_c + a T_m, T_m + b T_c).
        network_hidden: whether collectives run beside the rest of a step.
        prefill_attention: whether attention over prompts counts as compute.
        weight_floor: whether a step computes no faster than its weights are read.
    """

    costs: Costs
    memory_slope: float = Field(default=SLOPES[INTERFERENCE][0], ge=0, le=1)
    compute_slope: float = Field(default=SLOPES[INTERFERENCE][1], ge=0, le=1)
    network_hidden: bool = True
    prefill_attention: bool = False
    weight_floor: bool = True

    def overlapped(self, compute_s, memory_s):
        """Seconds of compute and memory work that overlap in this engine; numbers or arrays."""
        return overlapped_s(compute_s, memory_s, self.memory_slope, self.compute_slope)


class StepSeconds(NamedTuple):
    """Seconds of every step: compute, memory and network alone, and the step itself (float64 arrays)."""

    compute_s: np.ndarray
    memory_s: np.ndarray
    network_s: np.ndarray
    step_s: np.ndarray


def seconds_of(log: np.ndarray, engine: Engine) -> StepSeconds:
    """Seconds of the steps of a run.

    Parameters:
        log: int64[k, 5], a row a step, as of `workbench.blending.model.running.Run`.
        engine: how work becomes seconds.
    """
    parts = StepSeconds(*(np.empty(len(log)) for _ in range(4)))
    costs = engine.costs
    step_seconds(
        log, costs.token_s, costs.pair_flops / costs.flops_per_s if engine.prefill_attention else 0.0, costs.kv_token_s,
        costs.weight_bytes / costs.memory_bytes_per_s if engine.weight_floor else 0.0, costs.network_s_per_token,
        engine.memory_slope, engine.compute_slope, engine.network_hidden, *parts,
    )  # fmt: skip
    return parts
