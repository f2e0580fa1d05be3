"""Step time from kernels that were fitted to measured sweeps of the accelerator."""

from workbench.latency.bound import bound_coefficients
from workbench.latency.kernel_coefficients import kernel_coefficients
from workbench.latency.kernels.layout import ROOFLINE
from workbench.latency.messages import all_reduce
from workbench.latency.overheads import Overheads, default_overheads
from workbench.latency.rates import NOT_OVERLAPPED, SPLIT_TOKENS, achievable_rates, number, peak_rates
from workbench.latency.step_time import StepTime
from workbench.latency.traits import arithmetic_speedup
from workbench.latency.vector import overhead_rows, roofline_vector
from workbench.latency.work import work_of
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.deployment_record import Deployment
from workbench.profiles.model_record import Model
from workbench.records import Quantity, Source

SMALL_KERNELS = 5
"""Small kernels of a layer beside products and attention: two norms, rotary embedding, cache write, activation."""

SMALLEST_KERNEL = Quantity(
    value=2.5e-6, unit="s", status="inferred", source="the smallest kernels of A100, H100 and H200 in their sweeps"
)
"""Where an accelerator's own is not known."""


def fitted_kernels(
    model: Model, accelerator: Accelerator, deployment: Deployment, overheads: Overheads | None = None
) -> StepTime:
    """Every kernel by coefficients fitted to measured sweeps of this accelerator.

    The layer's own overhead is that of its five small kernels; launches of the large ones are in their coefficients.

    Raises:
        UserError: an accelerator, or a number format, without measured sweeps.
    """
    overheads = overheads or default_overheads()
    work, peaks, rates = work_of(model, deployment.tp), peak_rates(accelerator), achievable_rates(accelerator)
    dtype = {"fp16": "bf16"}.get(model.weight_dtype, model.weight_dtype)
    table, grouped = kernel_coefficients(), model.heads > model.kv_heads
    gemm = table.require("gemm", accelerator.name, dtype=dtype)
    decode = table.require("decode_attention", accelerator.name, grouped=grouped)
    prefill = table.require("prefill_attention", accelerator.name)
    speedup, messages = arithmetic_speedup(accelerator, dtype), all_reduce(accelerator, deployment.tp)
    flops_per_s = gemm.compute_fraction * peaks.flops_per_s * float(speedup)
    bytes_per_s = gemm.memory_fraction * peaks.memory_bytes_per_s
    attention_bytes_per_s = prefill.memory_fraction * peaks.memory_bytes_per_s
    small_s = accelerator.achievable.kernel_s or SMALLEST_KERNEL
    work_per_layer = work.context_bytes / work.layers
    coefficients = roofline_vector(
        work, rates, messages, overheads, SMALL_KERNELS * float(small_s), exponent=gemm.exponent,
        quantise_s=gemm.quantise_s_per_number * sum(matrix.rows for matrix in work.matrices),
        decode=(
            decode.launch_s, decode.split_s, SPLIT_TOKENS, work.kv_heads * decode.s_per_kv_head,
            work_per_layer / (decode.memory_fraction * peaks.memory_bytes_per_s),
        ),
        prefill=(
            prefill.launch_s, work.pair_flops / work.layers / (prefill.compute_fraction * peaks.flops_per_s),
            work.query_bytes_per_token / attention_bytes_per_s, work_per_layer / attention_bytes_per_s,
            NOT_OVERLAPPED, model.heads / deployment.tp * prefill.s_per_head,
        ),
        gemms=[
            (
                matrix.flops_per_token / flops_per_s, matrix.weight_bytes / bytes_per_s,
                matrix.activation_bytes_per_token / bytes_per_s, gemm.launch_s + matrix.rows * gemm.launch_s_per_row,
            )
            for matrix in (*work.matrices, work.head)
        ],
    )  # fmt: skip
    return StepTime(
        name="kernels",
        model=model,
        accelerator=accelerator,
        deployment=deployment,
        kind=ROOFLINE,
        coefficients=coefficients,
        bound=bound_coefficients(model, accelerator, deployment.tp),
        source=f"kernels fitted to measured sweeps ({gemm.source})",
        status="fitted",
        numbers=(
            *(
                Source(
                    quantity=f"{kind} attention" if kind else "matrix products",
                    value="fitted coefficients",
                    status=row.status,
                    source=row.source,
                )
                for kind, row in (("", gemm), ("decode", decode), ("prompt", prefill))
            ),
            *messages.numbers,
            number("smallest kernel", small_s),
            *overhead_rows(overheads),
        ),
    )
