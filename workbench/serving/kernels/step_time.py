"""Seconds of one step, in the order of operations that both backends share bit for bit."""

from workbench.jit import inner_kernel
from workbench.serving.kernels.layout import FORM


@inner_kernel
def step_seconds(numbers, prompt, pairs, context, batch):
    """The larger of two rows of coefficients.

    Parameters:
        numbers: float64 row of an instance.
        prompt: prompt tokens of the step.
        pairs: over its prompts, the square of the tokens stored after the step less that before.
        context: tokens stored by the requests that decode.
        batch: requests that take part.
    """
    p, q, kv, b, c = float(prompt), float(pairs), float(context), float(batch), numbers[FORM:]
    first = (((c[0] + c[1] * p) + c[2] * q) + c[3] * kv) + c[4] * b
    second = (((c[5] + c[6] * p) + c[7] * q) + c[8] * kv) + c[9] * b
    return first if first > second else second
