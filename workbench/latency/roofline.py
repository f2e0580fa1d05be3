"""Step time from profiles alone: kernel after kernel at achievable rates."""

from workbench.latency.bound import bound_coefficients
from workbench.latency.kernels.layout import ROOFLINE
from workbench.latency.messages import all_reduce
from workbench.latency.overheads import Overheads, default_overheads
from workbench.latency.rates import NOT_OVERLAPPED, TILE_PAIRS, Rates, achievable_rates, number
from workbench.latency.step_time import StepTime
from workbench.latency.traits import arithmetic_speedup
from workbench.latency.vector import overhead_rows, roofline_vector
from workbench.latency.work import Matrix, work_of
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.deployment_record import Deployment
from workbench.profiles.model_record import Model


def roofline(
    model: Model, accelerator: Accelerator, deployment: Deployment, overheads: Overheads | None = None
) -> StepTime:
    """Every kernel takes the longer of its arithmetic and its bytes at achievable rates; overheads as BLIS fitted them.

    Attention over prompts adds arithmetic and bytes (softmax stands between its two products).
    """
    overheads = overheads or default_overheads()
    work, rates = work_of(model, deployment.tp), achievable_rates(accelerator)
    speedup = arithmetic_speedup(accelerator, model.weight_dtype)
    messages = all_reduce(accelerator, deployment.tp)
    pair_s = work.pair_flops / work.layers / rates.prefill_attention_flops_per_s
    coefficients = roofline_vector(
        work, rates, messages, overheads, float(overheads.layer_s),
        decode=(0.0, 0.0, 0.0, 0.0, work.context_bytes / work.layers / rates.decode_attention_bytes_per_s),
        prefill=(
            0.0, pair_s, work.query_bytes_per_token / rates.memory_bytes_per_s + TILE_PAIRS * pair_s,
            work.context_bytes / work.layers / rates.memory_bytes_per_s, NOT_OVERLAPPED, 0.0,
        ),
        gemms=[_product(matrix, rates, float(speedup)) for matrix in (*work.matrices, work.head)],
    )  # fmt: skip
    statuses = {row.status for row in rates.numbers}
    return StepTime(
        name="roofline",
        model=model,
        accelerator=accelerator,
        deployment=deployment,
        kind=ROOFLINE,
        coefficients=coefficients,
        bound=bound_coefficients(model, accelerator, deployment.tp),
        source="roofline of every kernel at achievable rates, overheads of BLIS"
        + ("" if statuses <= {"measured", "user"} else "; some rates inferred from other accelerators"),
        status="computed",
        numbers=(*rates.numbers, *messages.numbers, number("arithmetic speed-up", speedup), *overhead_rows(overheads)),
    )


def _product(matrix: Matrix, rates: Rates, speedup: float) -> tuple[float, float, float, float]:
    return (
        matrix.flops_per_token / (rates.flops_per_s * speedup),
        matrix.weight_bytes / rates.memory_bytes_per_s,
        matrix.activation_bytes_per_token / rates.memory_bytes_per_s,
        0.0,
    )
