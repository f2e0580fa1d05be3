"""A Llama-shaped forward pass in plain double-precision NumPy, written from the papers' formulas and nothing else.

Root mean square norm (Zhang and Sennrich 2019), rotary positions by complex numbers (Su et al. 2021), grouped queries
(Ainslie et al. 2023), SwiGLU (Shazeer 2020); every token attends to itself and all before it.
"""

import numpy as np


def logits(weights, tokens, *, layers, heads, kv_heads, base=10_000.0, epsilon=1e-5):
    """float64 (tokens, vocabulary): the logits after every token of one text."""
    w = {name: values.astype(np.float64) for name, values in weights.items()}
    x = np.array([w["model.embed_tokens.weight"][token] for token in tokens])
    width = x.shape[1] // heads
    for layer in range(layers):
        mine = {name.split(f"layers.{layer}.")[1]: v for name, v in w.items() if f"layers.{layer}." in name}
        normed = rms(x, mine["input_layernorm.weight"], epsilon)
        q, k, v = (normed @ mine[f"self_attn.{one}_proj.weight"].T for one in "qkv")
        mixed = np.zeros_like(x)
        for head in range(heads):
            theirs = head // (heads // kv_heads)
            mine_q = turned(q[:, head * width : (head + 1) * width], base)
            mine_k = turned(k[:, theirs * width : (theirs + 1) * width], base)
            mine_v = v[:, theirs * width : (theirs + 1) * width]
            for place in range(len(tokens)):
                scores = mine_k[: place + 1] @ mine_q[place] / np.sqrt(width)
                shares = np.exp(scores - scores.max())
                mixed[place, head * width : (head + 1) * width] = shares @ mine_v[: place + 1] / shares.sum()
        x = x + mixed @ mine["self_attn.o_proj.weight"].T
        normed = rms(x, mine["post_attention_layernorm.weight"], epsilon)
        gate = normed @ mine["mlp.gate_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (normed @ mine["mlp.up_proj.weight"].T)) @ mine["mlp.down_proj.weight"].T
    return rms(x, w["model.norm.weight"], epsilon) @ w["lm_head.weight"].T


def rms(x, weight, epsilon):
    return x / np.sqrt((x**2).mean(axis=1, keepdims=True) + epsilon) * weight


def turned(x, base):
    """Number j of the first half and of the second half are the two parts of a complex number, turned by its place."""
    half = x.shape[1] // 2
    speeds = base ** (-np.arange(half) * 2 / x.shape[1])
    turn = np.exp(1j * np.arange(len(x))[:, None] * speeds)
    z = (x[:, :half] + 1j * x[:, half:]) * turn
    return np.concatenate([z.real, z.imag], axis=1)
