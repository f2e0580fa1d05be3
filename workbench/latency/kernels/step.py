"""Seconds of one step of an instance, by roofline or by linear coefficients, and the bound below which none can be.

A step processes `tokens` new prompt tokens of `prompts` requests, whose queries attend to `pairs` keys in all and read
`prompt_context` cached and new tokens, together with one token for each of `requests` decoding requests, whose caches
hold `context` tokens in all. Any of them may be 0.
"""

from workbench.jit import kernel
from workbench.latency.kernels.layout import (
    BOUND_COMPUTE_S_PER_PAIR,
    BOUND_COMPUTE_S_PER_SAMPLED,
    BOUND_COMPUTE_S_PER_TOKEN,
    BOUND_MESSAGES_S_PER_TOKEN,
    BOUND_S_PER_CONTEXT_TOKEN,
    BOUND_WEIGHTS_S,
    DECODE_LAUNCH_S,
    DECODE_S,
    DECODE_S_PER_CONTEXT_TOKEN,
    DECODE_S_PER_REQUEST,
    DECODE_SPLIT_S,
    DECODE_SPLIT_TOKENS,
    ELEMENTWISE_S_PER_TOKEN,
    FEW_TOKENS,
    GEMM_ACTIVATIONS_S_PER_TOKEN,
    GEMM_COMPUTE_S_PER_TOKEN,
    GEMM_EXPONENT,
    GEMM_LAUNCH_S,
    GEMM_SIZE,
    GEMM_WEIGHTS_S,
    GEMMS,
    LAYER_GEMMS,
    LAYER_S,
    LAYERS,
    LINEAR,
    LINEAR_S_PER_CONTEXT_TOKEN,
    LINEAR_S_PER_REQUEST,
    LINEAR_S_PER_SQUARED_TOKEN,
    LINEAR_S_PER_TOKEN,
    MANY_TOKENS,
    MESSAGES_S,
    MESSAGES_S_PER_TOKEN,
    PREFILL_EXPONENT,
    PREFILL_LAUNCH_S,
    PREFILL_LEAST_S,
    PREFILL_S,
    PREFILL_S_PER_CONTEXT_TOKEN,
    PREFILL_S_PER_PAIR,
    PREFILL_S_PER_PROMPT,
    PREFILL_S_PER_TOKEN,
    REQUEST_S,
    SLOWDOWN_AT_FEW,
    STEP_S,
)
from workbench.latency.kernels.parts import decode_attention_s, gemm_s, prefill_attention_s, slowdown


@kernel
def bound_s(b, tokens, pairs, prompt_context, prompts, requests, context):
    """The longest of arithmetic, bytes and messages at peak rates, each over the whole step."""
    rows = tokens + requests
    if rows == 0.0:
        return 0.0
    compute = rows * b[BOUND_COMPUTE_S_PER_TOKEN] + (prompts + requests) * b[BOUND_COMPUTE_S_PER_SAMPLED]
    compute += (pairs + context) * b[BOUND_COMPUTE_S_PER_PAIR]
    memory = b[BOUND_WEIGHTS_S] + (prompt_context + context) * b[BOUND_S_PER_CONTEXT_TOKEN]
    return max(compute, memory, rows * b[BOUND_MESSAGES_S_PER_TOKEN])


@kernel
def roofline_s(c, tokens, pairs, prompt_context, prompts, requests, context):
    """Kernel after kernel: matrix products, attention, elementwise work, messages and overheads."""
    rows = tokens + requests
    if rows == 0.0:
        return 0.0
    slower, exponent = slowdown(rows, c[FEW_TOKENS], c[MANY_TOKENS], c[SLOWDOWN_AT_FEW]), c[GEMM_EXPONENT]
    layer = c[LAYER_S] + rows * c[ELEMENTWISE_S_PER_TOKEN] + c[MESSAGES_S] + rows * c[MESSAGES_S_PER_TOKEN]
    for i in range(LAYER_GEMMS):
        g = GEMMS + i * GEMM_SIZE
        layer += gemm_s(
            rows, slower * c[g + GEMM_COMPUTE_S_PER_TOKEN], c[g + GEMM_WEIGHTS_S],
            c[g + GEMM_ACTIVATIONS_S_PER_TOKEN], c[g + GEMM_LAUNCH_S], exponent,
        )  # fmt: skip
    if requests > 0.0:
        layer += decode_attention_s(
            requests, context, c[DECODE_S_PER_REQUEST], c[DECODE_S_PER_CONTEXT_TOKEN], c[DECODE_LAUNCH_S],
            c[DECODE_SPLIT_S], c[DECODE_SPLIT_TOKENS],
        )  # fmt: skip
    if tokens > 0.0:
        layer += prefill_attention_s(
            prompts, tokens, pairs, prompt_context, c[PREFILL_S_PER_PROMPT], c[PREFILL_S_PER_PAIR],
            c[PREFILL_S_PER_TOKEN], c[PREFILL_S_PER_CONTEXT_TOKEN], c[PREFILL_LAUNCH_S], c[PREFILL_EXPONENT],
        )  # fmt: skip
    g = GEMMS + LAYER_GEMMS * GEMM_SIZE
    sampled = prompts + requests
    slower = slowdown(sampled, c[FEW_TOKENS], c[MANY_TOKENS], c[SLOWDOWN_AT_FEW])
    head = gemm_s(
        sampled, slower * c[g + GEMM_COMPUTE_S_PER_TOKEN], c[g + GEMM_WEIGHTS_S], c[g + GEMM_ACTIVATIONS_S_PER_TOKEN],
        c[g + GEMM_LAUNCH_S], exponent,
    )  # fmt: skip
    return c[STEP_S] + sampled * c[REQUEST_S] + c[LAYERS] * layer + head


@kernel
def linear_s(c, tokens, pairs, prompt_context, prompts, requests, context):
    """Fitted coefficients; a step of both kinds reads the weights once, so the smaller fixed part is not added.

    Few tokens take as long as reading the weights, the least time of their products.
    """
    prefill = decode = 0.0
    if tokens > 0.0:
        products = max(c[PREFILL_LEAST_S], tokens * c[LINEAR_S_PER_TOKEN])
        prefill = c[PREFILL_S] + products + (2.0 * pairs - tokens) * c[LINEAR_S_PER_SQUARED_TOKEN]
    if requests > 0.0:
        decode = c[DECODE_S] + context * c[LINEAR_S_PER_CONTEXT_TOKEN] + requests * c[LINEAR_S_PER_REQUEST]
    if tokens > 0.0 and requests > 0.0:
        return prefill + decode - min(c[PREFILL_S] + c[PREFILL_LEAST_S], c[DECODE_S])
    return prefill + decode


@kernel
def step_s(kind, c, b, tokens, pairs, prompt_context, prompts, requests, context):
    """Seconds of one step: the kind's estimate, never below the bound."""
    if kind == LINEAR:
        seconds = linear_s(c, tokens, pairs, prompt_context, prompts, requests, context)
    else:
        seconds = roofline_s(c, tokens, pairs, prompt_context, prompts, requests, context)
    return max(seconds, bound_s(b, tokens, pairs, prompt_context, prompts, requests, context))


@kernel
def fill_steps(kind, c, b, tokens, pairs, prompt_context, prompts, requests, context, seconds):
    """Fill float64[n] with `step_s` of n steps, given by six float64[n]."""
    for i in range(len(seconds)):
        seconds[i] = step_s(
            kind, c, b, tokens[i], pairs[i], prompt_context[i], prompts[i], requests[i], context[i]
        )  # fmt: skip


@kernel
def fill_bounds(b, tokens, pairs, prompt_context, prompts, requests, context, seconds):
    """Fill float64[n] with `bound_s` of n steps."""
    for i in range(len(seconds)):
        seconds[i] = bound_s(b, tokens[i], pairs[i], prompt_context[i], prompts[i], requests[i], context[i])
