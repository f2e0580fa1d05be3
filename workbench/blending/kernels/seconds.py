"""How long the steps of a run take."""

from workbench.blending.kernels.layout import KV_READ, PAIRS, TOKENS
from workbench.blending.policy.balance import tiled_up
from workbench.blending.policy.overlap import overlapped_s, with_network_s
from workbench.jit import kernel


@kernel
def step_seconds(
    log, token_s, pair_s, kv_token_s, weights_s, network_token_s, memory_slope, compute_slope, hidden,
    compute_s, memory_s, network_s, seconds,
):  # fmt: skip
    """Fill the seconds of every step.

    Parameters:
        log: int64[k, 5], see `layout`.
        token_s: dense compute of a token. pair_s: prefill attention, over growth of squared positions.
        kv_token_s: reading the KV of a token. weights_s: reading all weights, below which no step computes.
        network_token_s: collectives of a token; hidden: whether they run beside the rest.
        memory_slope, compute_slope: how compute and memory overlap.
        compute_s, memory_s, network_s, seconds: float64[k], filled.
    """
    for step in range(log.shape[0]):
        tokens = tiled_up(log[step, TOKENS])
        compute_s[step] = max(tokens * token_s, weights_s) + log[step, PAIRS] * pair_s
        memory_s[step] = log[step, KV_READ] * kv_token_s
        network_s[step] = tokens * network_token_s
        both = overlapped_s(compute_s[step], memory_s[step], memory_slope, compute_slope)
        seconds[step] = with_network_s(both, network_s[step], hidden)
