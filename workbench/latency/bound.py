"""The bound: arithmetic, bytes and messages of a step at data-sheet peaks, each as if it were alone."""

from workbench.latency.messages import least_message_s_per_byte
from workbench.latency.rates import peak_rates
from workbench.latency.traits import arithmetic_speedup
from workbench.latency.work import work_of
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.model_record import Model


def bound_coefficients(model: Model, accelerator: Accelerator, tp: int) -> tuple[float, ...]:
    """Numbers of `kernels.step.bound_s`: arithmetic, bytes and messages of a step at data-sheet peaks."""
    work, peaks = work_of(model, tp), peak_rates(accelerator)
    flops_per_s = peaks.flops_per_s * float(arithmetic_speedup(accelerator, model.weight_dtype))
    # Attention runs in 16 bits, but a bound may count it at the faster rate too.
    return (
        work.flops_per_token / flops_per_s,
        work.head.flops_per_token / flops_per_s,
        work.pair_flops / flops_per_s,
        work.weight_bytes / peaks.memory_bytes_per_s,
        work.context_bytes / peaks.memory_bytes_per_s,
        work.layers * work.message_bytes_per_token * least_message_s_per_byte(accelerator, tp),
    )
