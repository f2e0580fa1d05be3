"""Seconds of a step from a model's coefficients."""

from workbench.jit import lean_kernel


@lean_kernel
def prompt_s(prefill, model, tokens):
    """Seconds to process one prompt.

    Parameters:
        prefill: float64[M, 4], as of `workbench.pooling.model.lowered.Models`.
        model: index. tokens: of the prompt.
    """
    products = max(prefill[model, 3], tokens * prefill[model, 1])
    return prefill[model, 0] + products + float(tokens) * float(tokens) * prefill[model, 2]


@lean_kernel
def decode_step_s(decode, model, context, requests):
    """Seconds to give one token to each of so many requests, whose contexts hold so many tokens together.

    Parameters:
        decode: float64[M, 3]. model: index.
    """
    return decode[model, 0] + context * decode[model, 1] + requests * decode[model, 2]
