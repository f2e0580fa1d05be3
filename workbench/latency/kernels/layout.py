"""Where each number lies in the flat float64 vectors that the step kernels take."""

ROOFLINE, LINEAR = 0, 1
"""Kinds of step time; the kernels choose by this number with if/else."""

# The bound: no step is faster than its arithmetic at the peak rate, its bytes at the peak rate, or its messages.
BOUND_COMPUTE_S_PER_TOKEN = 0
BOUND_COMPUTE_S_PER_SAMPLED = 1
BOUND_COMPUTE_S_PER_PAIR = 2
BOUND_WEIGHTS_S = 3
BOUND_S_PER_CONTEXT_TOKEN = 4
BOUND_MESSAGES_S_PER_TOKEN = 5
BOUND_SIZE = 6

# Roofline, kernel by kernel: first the step, then attention, then one block a matrix.
LAYERS = 0
STEP_S = 1
LAYER_S = 2
REQUEST_S = 3
ELEMENTWISE_S_PER_TOKEN = 4
MESSAGES_S = 5
MESSAGES_S_PER_TOKEN = 6
FEW_TOKENS = 7
MANY_TOKENS = 8
SLOWDOWN_AT_FEW = 9
GEMM_EXPONENT = 10
DECODE_LAUNCH_S = 11
DECODE_SPLIT_S = 12
DECODE_SPLIT_TOKENS = 13
DECODE_S_PER_REQUEST = 14
DECODE_S_PER_CONTEXT_TOKEN = 15
PREFILL_LAUNCH_S = 16
PREFILL_S_PER_PAIR = 17
PREFILL_S_PER_TOKEN = 18
PREFILL_S_PER_CONTEXT_TOKEN = 19
PREFILL_EXPONENT = 20
PREFILL_S_PER_PROMPT = 21
GEMMS = 22
GEMM_COMPUTE_S_PER_TOKEN = 0
GEMM_WEIGHTS_S = 1
GEMM_ACTIVATIONS_S_PER_TOKEN = 2
GEMM_LAUNCH_S = 3
GEMM_SIZE = 4
LAYER_GEMMS = 4
"""Matrices of a layer: query/key/value, attention output, feed-forward in, feed-forward out; the head follows."""
ROOFLINE_SIZE = GEMMS + (LAYER_GEMMS + 1) * GEMM_SIZE

# Linear: a + max(least, b·tokens) + c·(sum of squared lengths) for prompts, a + b·context + c·requests for decoding.
PREFILL_S = 0
LINEAR_S_PER_TOKEN = 1
LINEAR_S_PER_SQUARED_TOKEN = 2
DECODE_S = 3
LINEAR_S_PER_CONTEXT_TOKEN = 4
LINEAR_S_PER_REQUEST = 5
PREFILL_LEAST_S = 6
LINEAR_SIZE = 7
