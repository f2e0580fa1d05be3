"""Keep-alive of one model on many nodes: where a start finds the weights, and which node is asked."""

from workbench.jit import kernel

STARTS = ("hot (GPU)", "warm (host memory)", "cold (SSD)")
"""Where the weights of a start lie, by number."""
HOT, WARM, COLD = range(3)


@kernel
def expired(now_s, since_s, keep_s):
    """Whether a copy that counts from `since_s` is dropped at the end of the second `now_s`."""
    return now_s - since_s > keep_s


@kernel
def start_kind(on_gpu, in_memory):
    """Number of a start in `STARTS`: the nearest tier that holds the weights."""
    if on_gpu:
        return HOT
    return WARM if in_memory else COLD


@kernel
def start_s(kind, ssd_to_memory_s, memory_to_gpu_s, serve_s):
    """Seconds a node is busy with one request: the loads its start needs, then serving."""
    if kind == HOT:
        return serve_s
    return memory_to_gpu_s + serve_s + (ssd_to_memory_s if kind == COLD else 0)


@kernel
def pick_node(idle, on_gpu, in_memory, by_locality):
    """Which idle node serves the next request, -1 for none.

    The first idle one; by locality the first among those with the nearest copy of the weights.

    Parameters:
        idle, on_gpu, in_memory: bool[nodes].
    """
    best, nearest = -1, COLD + 1
    for node in range(idle.size):
        if idle[node]:
            kind = start_kind(on_gpu[node], in_memory[node])
            if kind < nearest:
                best, nearest = node, kind
            if not by_locality or nearest == HOT:
                break
    return best
