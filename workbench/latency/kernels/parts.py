"""The parts of a step: one matrix product, attention of a decode step, attention over prompts."""

from workbench.jit import kernel


@kernel
def both_s(compute_s, memory_s, exponent):
    """Seconds of a kernel that computes and moves bytes at once.

    An exponent of 0 is the roofline, the longer of the two; 1 is no overlap, their sum; between lies (c^p + m^p)^(1/p),
    which is never below the roofline.
    """
    longer = max(compute_s, memory_s)
    if exponent == 0.0 or longer == 0.0:
        return longer
    shorter = min(compute_s, memory_s)
    if exponent == 1.0:
        return longer + shorter
    return longer * (1.0 + (shorter / longer) ** exponent) ** (1.0 / exponent)


@kernel
def slowdown(tokens, few_tokens, many_tokens, slowdown_at_few):
    """How much slower a matrix product computes than one of many rows: linear in its efficiency between two sizes."""
    if slowdown_at_few == 1.0 or tokens >= many_tokens:
        return 1.0
    if tokens <= few_tokens:
        return slowdown_at_few
    at_few = 1.0 / slowdown_at_few
    return 1.0 / (at_few + (1.0 - at_few) * (tokens - few_tokens) / (many_tokens - few_tokens))


@kernel
def gemm_s(tokens, compute_s_per_token, weights_s, activations_s_per_token, launch_s, exponent):
    """Seconds of tokens rows times one weight matrix: compute against reading weights and moving activations."""
    return launch_s + both_s(tokens * compute_s_per_token, weights_s + tokens * activations_s_per_token, exponent)


@kernel
def decode_attention_s(requests, context_tokens, s_per_request, s_per_context_token, launch_s, split_s, split_tokens):
    """Seconds of one layer's attention in a decode step: reading the cache, or issuing work for every request.

    Above `split_tokens` of mean context the kernel splits each cache and adds up in a second pass of `split_s`.
    """
    seconds = launch_s + max(requests * s_per_request, context_tokens * s_per_context_token)
    if context_tokens > split_tokens * requests:
        seconds += split_s
    return seconds


@kernel
def prefill_attention_s(
    prompts, tokens, pairs, context_tokens, s_per_prompt, s_per_pair, s_per_token, s_per_context_token, launch_s,
    exponent,
):  # fmt: skip
    """Seconds of one layer's causal attention over prompts.

    `pairs` counts (query, key) pairs that attend, `tokens` the queries and outputs moved, `context_tokens` keys read.
    """
    moved = tokens * s_per_token + context_tokens * s_per_context_token
    return launch_s + prompts * s_per_prompt + both_s(pairs * s_per_pair, moved, exponent)


@kernel
def fill_gemms(tokens, compute_s_per_token, weights_s, activations_s_per_token, launch_s, exponent, seconds):
    """Fill float64[n] with `gemm_s` of n matrix products; all but the exponent are float64[n]."""
    for i in range(len(seconds)):
        seconds[i] = gemm_s(
            tokens[i], compute_s_per_token[i], weights_s[i], activations_s_per_token[i], launch_s[i], exponent
        )


@kernel
def fill_decode_attention(
    requests, context_tokens, s_per_request, s_per_context_token, launch_s, split_s, split_tokens, seconds
):
    """Fill float64[n] with `decode_attention_s`; the first four are float64[n], the rest numbers."""
    for i in range(len(seconds)):
        seconds[i] = decode_attention_s(
            requests[i], context_tokens[i], s_per_request[i], s_per_context_token[i], launch_s, split_s, split_tokens
        )


@kernel
def fill_prefill_attention(
    prompts, tokens, pairs, context_tokens, s_per_prompt, s_per_pair, s_per_token, s_per_context_token, launch_s,
    exponent, seconds,
):  # fmt: skip
    """Fill float64[n] with `prefill_attention_s`; the first eight are float64[n], the rest numbers."""
    for i in range(len(seconds)):
        seconds[i] = prefill_attention_s(
            prompts[i], tokens[i], pairs[i], context_tokens[i], s_per_prompt[i], s_per_pair[i], s_per_token[i],
            s_per_context_token[i], launch_s, exponent,
        )  # fmt: skip
