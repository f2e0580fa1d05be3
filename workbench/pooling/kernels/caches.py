"""KV caches on their way between GPU and host, and weights that a host holds."""

from workbench.jit import inner_kernel
from workbench.pooling.kernels.flows import start_flow
from workbench.pooling.kernels.layout import (
    BLOCKS,
    COMING,
    DECODES,
    FLOW_FROM_S,
    HOST_USED,
    IN,
    IN_HEAD,
    IN_HOST,
    IN_NOW,
    IN_TAIL,
    IS_DECODE,
    KV,
    LEAVING,
    MADE,
    MODEL,
    MOVED_S,
    NEXT_IN,
    NEXT_OUT,
    NODE,
    ON_GPU,
    OUT,
    OUT_HEAD,
    OUT_NOW,
    OUT_TAIL,
    OUTS,
    PROMPT,
    QUIET,
    READY_S,
    RESIDENT,
    USED_BYTES,
    WAITED_S,
    WANTED,
)
from workbench.pooling.policy.memory import blocks_of
from workbench.pooling.policy.moving import may_come


@inner_kernel
def leave(s, i, r, now):
    """Send a request's KV cache from instance `i` to the host, behind those that leave before it."""
    row, one = s.requests[r], s.instances[i]
    row[BLOCKS] = blocks_of(row[PROMPT] + row[MADE], s.rules.block_tokens)
    row[KV], row[LEAVING], row[NEXT_OUT] = IN_HOST, 1, -1
    one[OUTS] += 1
    if one[OUT_HEAD] < 0:
        one[OUT_HEAD] = r
    else:
        s.requests[one[OUT_TAIL], NEXT_OUT] = r
    one[OUT_TAIL] = r
    next_out(s, i, now)


@inner_kernel
def next_out(s, i, now):
    """Start the next transfer out of a GPU, unless one is going."""
    one = s.instances[i]
    if one[OUT_NOW] >= 0 or one[OUT_HEAD] < 0:
        return
    r = one[OUT_HEAD]
    one[OUT_HEAD], one[OUT_NOW] = s.requests[r, NEXT_OUT], r
    s.moments[r, FLOW_FROM_S] = now
    note_host(s, i, r, now, s.requests[r, BLOCKS])
    size = s.requests[r, BLOCKS] * s.models.block_bytes[s.requests[r, MODEL]]
    start_flow(s, i, OUT, size, s.pool.link_bytes_per_s, now)


@inner_kernel
def left(s, i, now):
    """A KV cache has arrived at the host: the next one goes, and one that waits for this may come."""
    one = s.instances[i]
    r = one[OUT_NOW]
    row = s.requests[r]
    one[OUT_NOW] = -1
    one[OUTS] -= 1
    row[LEAVING] = 0
    s.moments[r, MOVED_S] += now - s.moments[r, FLOW_FROM_S]
    if one[IS_DECODE] == 1:
        one[USED_BYTES] -= row[BLOCKS] * s.models.block_bytes[row[MODEL]]
    next_out(s, i, now)
    if row[DECODES] >= 0:
        next_in(s, row[DECODES], now)
    next_in(s, i, now)


@inner_kernel
def call(s, r):
    """Queue a request's KV cache for the way to the instance that decodes it, if it is in the host."""
    row = s.requests[r]
    if row[KV] != IN_HOST:
        return
    one = s.instances[row[DECODES]]
    row[KV], row[NEXT_IN] = WANTED, -1
    if one[IN_HEAD] < 0:
        one[IN_HEAD] = r
    else:
        s.requests[one[IN_TAIL], NEXT_IN] = r
    one[IN_TAIL] = r


@inner_kernel
def next_in(s, i, now):
    """Start the next transfer into a GPU, unless one is going or the first in line may not come yet."""
    one = s.instances[i]
    if one[IN_NOW] >= 0 or one[IN_HEAD] < 0:
        return
    r = one[IN_HEAD]
    row = s.requests[r]
    block_bytes = s.models.block_bytes[row[MODEL]]
    size, room = row[BLOCKS] * block_bytes, s.models.capacity[row[MODEL]] * block_bytes
    if not may_come(row[LEAVING] == 1, one[USED_BYTES], size, room, one[OUTS] > 0):
        return
    one[IN_HEAD], one[IN_NOW] = row[NEXT_IN], r
    row[KV] = COMING
    one[USED_BYTES] += size
    s.moments[r, FLOW_FROM_S] = now
    start_flow(s, i, IN, size, s.pool.link_bytes_per_s, now)


@inner_kernel
def come(s, i, now):
    """A KV cache has arrived at its GPU; its blocks in the host are free."""
    one = s.instances[i]
    r = one[IN_NOW]
    row, moments = s.requests[r], s.moments[r]
    one[IN_NOW] = -1
    row[KV] = ON_GPU
    moments[MOVED_S] += now - moments[FLOW_FROM_S]
    if one[RESIDENT] == row[MODEL]:
        moments[WAITED_S] += max(0.0, now - max(s.reals[i, READY_S], moments[FLOW_FROM_S]))
    note_host(s, i, r, now, -row[BLOCKS])
    next_in(s, i, now)


@inner_kernel
def give_up_calls(s, i):
    """Those that were called and have not started stay in the host."""
    one = s.instances[i]
    r = one[IN_HEAD]
    while r >= 0:
        s.requests[r, KV] = IN_HOST
        r = s.requests[r, NEXT_IN]
    one[IN_HEAD] = -1


@inner_kernel
def uncall(s, i, r):
    """Take one request out of the line of those called."""
    one = s.instances[i]
    before, at = -1, one[IN_HEAD]
    while at != r:
        before, at = at, s.requests[at, NEXT_IN]
    if before < 0:
        one[IN_HEAD] = s.requests[r, NEXT_IN]
    else:
        s.requests[before, NEXT_IN] = s.requests[r, NEXT_IN]
    if one[IN_TAIL] == r:
        one[IN_TAIL] = before
    s.requests[r, KV] = IN_HOST


@inner_kernel
def note_host(s, i, r, now, blocks):
    """Write down that blocks of the host were taken, or are free."""
    if s.shared[QUIET] == 1:
        return
    k = s.shared[HOST_USED]
    if k < s.host.shape[0]:
        line = s.host[k]
        line[0], line[1], line[2], line[3], line[4] = now, s.instances[i, NODE], r, s.requests[r, MODEL], blocks
    s.shared[HOST_USED] = k + 1


@inner_kernel
def rate_from_host(s, node, model, now):
    """Rate at which weights come to a GPU; a host without them holds them now, in place of those read longest ago."""
    cap = s.models.load_bytes_per_s[model]
    s.held_s[node, model] = now
    if s.held[node, model] == 1:
        return cap
    size = s.models.weight_bytes[model]
    while s.held_bytes[node] + size > s.pool.cache_bytes:
        oldest = -1
        for m in range(s.held.shape[1]):
            if s.held[node, m] == 1 and (oldest < 0 or s.held_s[node, m] < s.held_s[node, oldest]):
                oldest = m
        if oldest < 0:
            break
        s.held[node, oldest] = 0
        s.held_bytes[node] -= s.models.weight_bytes[oldest]
    if s.held_bytes[node] + size <= s.pool.cache_bytes:
        s.held[node, model] = 1
        s.held_bytes[node] += size
    return min(cap, s.pool.miss_bytes_per_s)
