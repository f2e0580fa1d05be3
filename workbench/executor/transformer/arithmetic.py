"""The arithmetic of one layer, in two forms that differ in the order of additions.

*plain* hands whole matrices to the library. *invariant* gives every token the same bits whatever is computed beside it:
rows come in sixteens (a library takes another routine for few rows, and other instructions for the last few numbers of
an array), and every query attends alone, over exactly its own keys. With one thread a batch, a prompt cut into chunks
and a cache that is computed anew then equal the single whole run bit for bit; it costs 1.4 to 1.8 times the time.
Whether a machine keeps this, `probing` asks.
"""

from typing import Any, Literal, get_args

from workbench.errors import UnknownName

Arithmetic = Literal["invariant", "plain"]
ROWS = 16


def check_arithmetic(arithmetic: str) -> None:
    """Refuse a form of arithmetic that does not exist."""
    if arithmetic not in get_args(Arithmetic):
        raise UnknownName("arithmetic", arithmetic, get_args(Arithmetic))


def padded(rows: Any, arithmetic: Arithmetic) -> Any:
    """Rows (r, h) with as many empty ones behind them as the arithmetic needs."""
    from torch.nn.functional import pad

    return pad(rows, (0, 0, 0, -len(rows) % ROWS)) if arithmetic == "invariant" else rows


def norm(rows: Any, weight: Any, epsilon: float) -> Any:
    """RMSNorm of rows (r, h): each over the root of its mean square, times a weight (h,) (Zhang and Sennrich 2019)."""
    return rows * (rows.pow(2).mean(-1, keepdim=True) + epsilon).rsqrt() * weight


def angles(width: int, longest: int, base: float, device: str) -> tuple[Any, Any]:
    """Cosines and sines of the rotary positions, float32 (longest, width / 2) each (Su et al. 2021)."""
    import torch

    turns = base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.outer(torch.arange(longest, dtype=torch.float64), turns)
    return angle.cos().float().to(device), angle.sin().float().to(device)


def rotate(heads: Any, cosine: Any, sine: Any) -> Any:
    """Turn queries or keys (tokens, heads, width) by their positions; a head's halves are the two coordinates."""
    import torch

    first, second = heads.chunk(2, -1)
    cosine, sine = cosine[:, None], sine[:, None]
    return torch.cat((first * cosine - second * sine, second * cosine + first * sine), -1)


def attend(query: Any, keys: Any, values: Any, arithmetic: Arithmetic) -> Any:
    """Causal attention of the last tokens over all tokens so far: (tokens, heads x width).

    Parameters:
        query: (tokens, heads, width).
        keys, values: (kv heads, all tokens, width); each serves a group of neighbouring query heads.
    """
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    tokens, heads, width = query.shape
    kv_heads, every = keys.shape[:2]
    keys, values = keys[None], values[None]
    if arithmetic == "plain":
        seen = torch.ones(tokens, every, dtype=torch.bool, device=query.device).tril(every - tokens)
        mixed = scaled_dot_product_attention(
            query.transpose(0, 1)[None], keys, values, attn_mask=seen, enable_gqa=kv_heads < heads
        )
        return mixed[0].transpose(0, 1).reshape(tokens, heads * width)
    grouped = query.reshape(tokens, 1, kv_heads, heads // kv_heads, width)
    mixed = [
        scaled_dot_product_attention(one, keys[:, :, :last], values[:, :, :last])
        for last, one in enumerate(grouped, start=every - tokens + 1)
    ]
    return torch.stack(mixed).reshape(tokens, heads * width)
