"""How many requests and tokens make a balanced batch, and how much memory each end of the order gets."""

from workbench.jit import kernel

TILE = 128
"""Tokens: dense batches come in multiples of it."""


@kernel
def memory_split(pool, left_density, right_density, root_density):
    """The shares (M_L, M_R) of a KV pool with which the blend of both ends has the density of all requests.

    Solves M_L + M_R = M and M_L ρ_L + M_R ρ_R = M ρ_rt. Two ends of one density get a half each; where both lie on the
    same side of ρ_rt there is no blend, and the end that is nearer to it gets all.

    Parameters:
        pool: M, in bytes or tokens; the shares come in the same unit.
        left_density, right_density, root_density: compute over memory time of both ends and of all requests.
    """
    if left_density == right_density:
        return 0.5 * pool, 0.5 * pool
    share = (root_density - right_density) / (left_density - right_density)
    left = pool * min(max(share, 0.0), 1.0)
    return left, pool - left


@kernel
def lasting_split(pool, heavy_share, left_density, root_density):
    """The share of the right end while the left one stands in units above the density of all; all of it afterwards.

    Parameters:
        pool: KV tokens.
        heavy_share: share of all KV reads that units below the density of all make. With the mean densities of both
            kinds of units the equations of `memory_split` give just this share, and it holds from the first unit to the
            last: memory that long requests were given for one unit's sake is not to be had back for the next.
        left_density, root_density: of the left end's unit and of all requests.
    """
    return pool * heavy_share if left_density > root_density else pool


@kernel
def in_flight(memory, mean_held):
    """Requests that decode at once in a share of the pool, N_X: its tokens over the mean tokens that one holds."""
    return memory / mean_held


@kernel
def prefill_tokens_per_step(requests, prompt_tokens, output_tokens):
    """Prompt tokens that must be computed a step to keep so many requests in flight, C_X = N_X p_X / d_X."""
    return requests * prompt_tokens / output_tokens


@kernel
def tiled(tokens, cap):
    """A wanted dense batch as a multiple of the tile: the nearest, at least one tile, at most the cap."""
    tiles = int(tokens / TILE + 0.5)
    return min(max(tiles, 1) * TILE, cap)


@kernel
def tiled_up(tokens):
    """Tokens rounded up to whole tiles; a step computes that many whatever it holds."""
    return -(-tokens // TILE) * TILE


@kernel
def balanced_batch(kv_tokens, compute_left, kv_left, cap):
    """The dense batch whose compute time stands to a step's memory time as in the work that is left.

    Parameters:
        kv_tokens: KV tokens that this step reads.
        compute_left: tokens still to be computed by all requests, estimated.
        kv_left: KV tokens still to be read by all requests, estimated.
        cap: largest dense batch.

    With all work left this is ρ_rt T_m (compute rate) / (2 P). Where the estimates are used up it is the cap.
    """
    if kv_left <= 0.0 or compute_left <= 0.0:
        return cap
    return tiled(min(kv_tokens * (compute_left / kv_left), float(cap)), cap)
