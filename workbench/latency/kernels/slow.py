"""Plain Python twins of the kernels: what a step costs, spelled out matrix by matrix, without regard for speed."""

import itertools
import math


def both_slow(compute_s, memory_s, exponent):
    """The longer of the two (exponent 0), or the p-norm of both."""
    if exponent == 0:
        return max(compute_s, memory_s)
    return math.pow(math.pow(compute_s, exponent) + math.pow(memory_s, exponent), 1 / exponent)


def efficiency_slow(tokens, efficiencies):
    """Relative efficiency of a matrix product, by straight lines through [(tokens, efficiency), ...], flat outside."""
    for (left, low), (right, high) in itertools.pairwise(efficiencies):
        if left <= tokens <= right:
            return low + (high - low) * (tokens - left) / (right - left)
    return efficiencies[0][1] if tokens < efficiencies[0][0] else efficiencies[-1][1]


def roofline_slow(step, layers, gemms, head, attention, overheads, efficiencies):
    """Seconds of one step.

    Parameters:
        step: dict of tokens, pairs, prompt_context, prompts, requests, context.
        layers: how many.
        gemms: for each matrix of a layer a dict of compute_s_per_token, weights_s, activations_s_per_token, launch_s.
        head: the same for the output matrix, which works on one row a request.
        attention: dict of two dicts, decode and prefill, each with the arguments of its kernel.
        overheads: dict of step_s, layer_s, request_s, elementwise_s_per_token, messages_s, messages_s_per_token.
        efficiencies: as in `efficiency_slow`; and under "exponent" in `overheads` how products overlap.
    """
    rows, sampled = step["tokens"] + step["requests"], step["prompts"] + step["requests"]
    if rows == 0:
        return 0.0

    def product(count, matrix):
        compute = count * matrix["compute_s_per_token"] / efficiency_slow(count, efficiencies)
        memory = matrix["weights_s"] + count * matrix["activations_s_per_token"]
        return matrix["launch_s"] + both_slow(compute, memory, overheads["exponent"])

    total = overheads["step_s"] + sampled * overheads["request_s"] + product(sampled, head)
    for _ in range(layers):
        total += overheads["layer_s"] + rows * overheads["elementwise_s_per_token"]
        total += overheads["messages_s"] + rows * overheads["messages_s_per_token"]
        total += sum(product(rows, matrix) for matrix in gemms)
        if step["requests"]:
            total += decode_attention_slow(step["requests"], step["context"], **attention["decode"])
        if step["tokens"]:
            total += prefill_attention_slow(step, **attention["prefill"])
    return total


def decode_attention_slow(
    requests, context, s_per_request, s_per_context_token, launch_s, split_s=0.0, split_tokens=math.inf
):
    """One layer's attention of a decode step."""
    split = split_s if context / requests > split_tokens else 0.0
    return launch_s + split + max(requests * s_per_request, context * s_per_context_token)


def prefill_attention_slow(
    step, s_per_pair, s_per_token, s_per_context_token, launch_s, s_per_prompt=0.0, exponent=1.0
):
    """One layer's attention over the prompts of a step."""
    moved = step["tokens"] * s_per_token + step["prompt_context"] * s_per_context_token
    return launch_s + step["prompts"] * s_per_prompt + both_slow(step["pairs"] * s_per_pair, moved, exponent)


def linear_slow(step, prefill, decode, least=0.0):
    """Seconds by coefficients: prefill (s, s/token, s/token²) on tokens and squares, decode (s, s/token, s/request)."""
    parts, fixed = [], []
    if step["tokens"]:
        squares = 2 * step["pairs"] - step["tokens"]
        parts += [prefill[0], max(least, prefill[1] * step["tokens"]), prefill[2] * squares]
        fixed.append(prefill[0] + least)
    if step["requests"]:
        parts += [decode[0], decode[1] * step["context"], decode[2] * step["requests"]]
        fixed.append(decode[0])
    return sum(parts) - (min(fixed) if len(fixed) == 2 else 0.0)


def bound_slow(step, flops, moved, peaks):
    """The longest of all arithmetic, all bytes and all messages at peak rates.

    Parameters:
        step: dict of tokens, pairs, prompt_context, prompts, requests, context.
        flops: dict per token, per sampled and per pair, on one accelerator.
        moved: dict of weights (bytes), context_token (bytes) and message (bytes a token) on one accelerator.
        peaks: dict of flops, memory and link, per second.
    """
    rows = step["tokens"] + step["requests"]
    if rows == 0:
        return 0.0
    work = rows * flops["token"] + (step["prompts"] + step["requests"]) * flops["sampled"]
    work += (step["pairs"] + step["context"]) * flops["pair"]
    read = moved["weights"] + (step["prompt_context"] + step["context"]) * moved["context_token"]
    return max(work / peaks["flops"], read / peaks["memory"], rows * moved["message"] / peaks["link"])
