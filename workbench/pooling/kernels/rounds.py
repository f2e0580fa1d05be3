"""Rounds of an instance that decodes: its requests packed into batches, in a fixed order, each with its quota."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.pooling.kernels.layout import (
    ASLEEP,
    BATCH_COUNT,
    BATCH_HEAD,
    BATCH_MODEL,
    BATCH_NEXT,
    BATCH_TAIL,
    END_S,
    FIRST_BATCH,
    FIRST_S,
    IDLE,
    IN_ROUND,
    LAST_BATCH,
    MADE,
    MODEL,
    NEXT,
    PLACE,
    PROMPT,
    QUIET,
    ROUNDS_USED,
    SPARES,
    STAGE,
)
from workbench.pooling.policy.memory import AHEAD_TO_JOIN, blocks_of
from workbench.pooling.policy.quota import fill_quotas
from workbench.pooling.policy.steps import decode_step_s


@inner_kernel
def batch_blocks(s, b, ahead):
    """KV blocks of a batch whose requests are so many tokens longer."""
    total, r = 0, s.batches[b, BATCH_HEAD]
    while r >= 0:
        total += blocks_of(s.requests[r, PROMPT] + s.requests[r, MADE] + ahead, s.rules.block_tokens)
        r = s.requests[r, NEXT]
    return total


@inner_kernel
def fits(s, b, r):
    """Whether a request may join a batch."""
    blocks = blocks_of(s.requests[r, PROMPT] + s.requests[r, MADE] + AHEAD_TO_JOIN, s.rules.block_tokens)
    return batch_blocks(s, b, AHEAD_TO_JOIN) + blocks <= s.models.capacity[s.requests[r, MODEL]]


@inner_kernel
def new_batch(s, i, model):
    """An empty batch at the end of a work list, not part of the round."""
    s.shared[SPARES] -= 1
    b = s.spare[s.shared[SPARES]]
    batch, one = s.batches[b], s.instances[i]
    batch[BATCH_MODEL], batch[BATCH_HEAD], batch[BATCH_COUNT] = model, -1, 0
    batch[BATCH_NEXT], batch[IN_ROUND] = -1, 0
    if one[FIRST_BATCH] < 0:
        one[FIRST_BATCH] = b
    else:
        s.batches[one[LAST_BATCH], BATCH_NEXT] = b
    one[LAST_BATCH] = b
    return b


@inner_kernel
def add_last(s, b, r):
    """Put a request at the end of a batch."""
    batch = s.batches[b]
    s.requests[r, NEXT] = -1
    if batch[BATCH_HEAD] < 0:
        batch[BATCH_HEAD] = r
    else:
        s.requests[batch[BATCH_TAIL], NEXT] = r
    batch[BATCH_TAIL] = r
    batch[BATCH_COUNT] += 1


@inner_kernel
def is_full(s, b, now):
    """Whether all requests of a batch are as far ahead of their readers as they may be."""
    if s.rules.buffer_s == np.inf:
        return False
    r = s.batches[b, BATCH_HEAD]
    while r >= 0:
        if s.moments[r, FIRST_S] + s.requests[r, MADE] * s.rules.tbt_s - now < s.rules.buffer_s:
            return False
        r = s.requests[r, NEXT]
    return True


@inner_kernel
def begin_round(s, i, now):
    """Pack the requests of an instance into batches anew; False where nobody is there, or nobody needs a token yet."""
    one = s.instances[i]
    count = gather(s, i)
    one[FIRST_BATCH], one[PLACE] = -1, -1
    if count == 0:
        one[STAGE] = IDLE
        return False
    batches = pack(s, i, count)
    pausing = 0
    b = one[FIRST_BATCH]
    while b >= 0:
        pausing += 1 if is_full(s, b, now) else 0
        b = s.batches[b, BATCH_NEXT]
    if pausing == batches:
        one[STAGE], s.times[i, END_S] = ASLEEP, waking_s(s, i)
        return False
    assign(s, i, batches, now)
    return True


@inner_kernel
def gather(s, i):
    """All requests of an instance in order of arrival, in `some`; their batches are free. Returns how many."""
    count, b = 0, s.instances[i, FIRST_BATCH]
    while b >= 0:
        r = s.batches[b, BATCH_HEAD]
        while r >= 0:
            place = count
            while place > 0 and s.some[place - 1] > r:
                s.some[place] = s.some[place - 1]
                place -= 1
            s.some[place] = r
            count += 1
            r = s.requests[r, NEXT]
        s.spare[s.shared[SPARES]] = b
        s.shared[SPARES] += 1
        b = s.batches[b, BATCH_NEXT]
    return count


@inner_kernel
def pack(s, i, count):
    """First fit into batches of one model each, the batches then in order of their models. Returns how many."""
    one, batches = s.instances[i], 0
    for k in range(count):
        r, home, b = s.some[k], -1, one[FIRST_BATCH]
        while b >= 0 and home < 0:
            if s.batches[b, BATCH_MODEL] == s.requests[r, MODEL] and fits(s, b, r):
                home = b
            b = s.batches[b, BATCH_NEXT]
        if home < 0:
            home = new_batch(s, i, s.requests[r, MODEL])
            batches += 1
        add_last(s, home, r)
    # Insertion into a list that is sorted by model; equal ones stay in the order in which they were made.
    b, one[FIRST_BATCH], one[LAST_BATCH] = one[FIRST_BATCH], -1, -1
    while b >= 0:
        after, before, at = s.batches[b, BATCH_NEXT], -1, one[FIRST_BATCH]
        while at >= 0 and s.batches[at, BATCH_MODEL] <= s.batches[b, BATCH_MODEL]:
            before, at = at, s.batches[at, BATCH_NEXT]
        s.batches[b, BATCH_NEXT] = at
        if before < 0:
            one[FIRST_BATCH] = b
        else:
            s.batches[before, BATCH_NEXT] = b
        if at < 0:
            one[LAST_BATCH] = b
        b = after
    return batches


@inner_kernel
def assign(s, i, batches, now):
    """Give each batch its quota and make it part of the round."""
    rules, models = s.rules, s.models
    switches_s, k, before, b = 0.0, 0, -1, s.instances[i, FIRST_BATCH]
    while b >= 0:
        batch = s.batches[b]
        model, context, r = batch[BATCH_MODEL], 0, batch[BATCH_HEAD]
        while r >= 0:
            context += s.requests[r, PROMPT] + s.requests[r, MADE]
            r = s.requests[r, NEXT]
        if model != before:
            switches_s += models.assumed_s[model]
        before = model
        s.many[k] = decode_step_s(models.decode, model, context, -1 if rules.blind == 1 else batch[BATCH_COUNT])
        batch[IN_ROUND] = 1
        k += 1
        b = batch[BATCH_NEXT]
    quotas = s.many[batches : 2 * batches]
    pace = fill_quotas(s.many[:batches], rules.tbt_s, switches_s, rules.most_s, rules.floor, quotas)
    k, whole_s, b = 0, 0.0, s.instances[i, FIRST_BATCH]
    while b >= 0:
        s.quotas[b] = quotas[k]
        whole_s += quotas[k]
        k += 1
        b = s.batches[b, BATCH_NEXT]
    if s.shared[QUIET] == 0:
        k = s.shared[ROUNDS_USED]
        if k < s.rounds.shape[0]:
            line = s.rounds[k]
            line[0], line[1], line[2], line[3], line[4], line[5] = now, i, batches, pace, switches_s, whole_s
        s.shared[ROUNDS_USED] = k + 1


@inner_kernel
def waking_s(s, i):
    """When the first of the pausing batches needs a token: when one of its requests is one token below the cap."""
    first_s, b = np.inf, s.instances[i, FIRST_BATCH]
    while b >= 0:
        r = s.batches[b, BATCH_HEAD]
        while r >= 0:
            lead = s.moments[r, FIRST_S] + s.requests[r, MADE] * s.rules.tbt_s
            first_s = min(first_s, lead - s.rules.buffer_s + s.rules.tbt_s)
            r = s.requests[r, NEXT]
        b = s.batches[b, BATCH_NEXT]
    return first_s
