"""Whole requests: which instance and batch takes one, and the order of the batches of an instance."""

from workbench.jit import inner_kernel
from workbench.pooling.kernels.layout import (
    ACTIVE_S,
    BATCH_COUNT,
    BATCH_HEAD,
    BATCH_MODEL,
    BATCH_NEXT,
    BATCH_USED,
    BATCH_WAITING,
    FIRST_BATCH,
    GROUP,
    KV,
    LAST_BATCH,
    MADE,
    MODEL,
    NEXT,
    ON_GPU,
    OUTPUT,
    PREFILLS,
    PROMPT,
    TAIL_MODEL,
)
from workbench.pooling.kernels.rounds import add_last, new_batch
from workbench.pooling.policy.names import RUNS, SHARED
from workbench.pooling.policy.steps import decode_step_s, prompt_s
from workbench.pooling.policy.wholes import RUN, place_run


@inner_kernel
def place(s, r):
    """Give a request to an instance; returns which."""
    model = s.requests[r, MODEL]
    if s.rules.system == SHARED:
        i = s.models.place[model]
        put(s, i, batch_of(s, i, model), r)
        return i
    begin, end = s.first[s.models.home[model]], s.first[s.models.home[model] + 1]
    if s.rules.system == RUNS:
        tails, runs = s.chosen, s.some
        for i in range(begin, end):
            b = last_batch(s, i)
            tails[i] = s.instances[i, TAIL_MODEL] if b < 0 else s.batches[b, BATCH_MODEL]
            runs[i] = 0 if b < 0 else s.batches[b, BATCH_COUNT]
            s.many[i] = s.reals[i, ACTIVE_S]
        i = place_run(tails, runs, s.many, begin, end, model)
        put(s, i, last_batch(s, i) if tails[i] == model else -1, r)
        return i
    best, fewest = -1, 0
    for i in range(begin, end):
        count, b = 0, s.instances[i, FIRST_BATCH]
        while b >= 0:
            batch = s.batches[b]
            if batch[BATCH_MODEL] == model and 0 < batch[BATCH_COUNT] < RUN:
                put(s, i, b, r)
                return i
            count += 1 if batch[BATCH_COUNT] > 0 else 0
            b = batch[BATCH_NEXT]
        if best < 0 or count < fewest:
            best, fewest = i, count
    put(s, best, -1, r)
    return best


@inner_kernel
def batch_of(s, i, model):
    """The batch of a model on an instance, -1 for none."""
    b = s.instances[i, FIRST_BATCH]
    while b >= 0 and s.batches[b, BATCH_MODEL] != model:
        b = s.batches[b, BATCH_NEXT]
    return b


@inner_kernel
def last_batch(s, i):
    """The last batch of an instance that has requests, -1 for none."""
    last, b = -1, s.instances[i, FIRST_BATCH]
    while b >= 0:
        if s.batches[b, BATCH_COUNT] > 0:
            last = b
        b = s.batches[b, BATCH_NEXT]
    return last


@inner_kernel
def put(s, i, b, r):
    """Put a request into batch `b` of an instance, or into a new one at the end where that is -1."""
    row, one = s.requests[r], s.instances[i]
    if b < 0:
        b = new_batch(s, i, row[MODEL])
        s.batches[b, BATCH_WAITING], s.batches[b, BATCH_USED] = 0, 0
        one[TAIL_MODEL] = row[MODEL]
    add_last(s, b, r)
    s.batches[b, BATCH_WAITING] += 1
    row[GROUP], row[PREFILLS] = b, i


@inner_kernel
def sort_batches(s, i):
    """Put the batches of an instance in order of their remaining time, equal ones as they are."""
    one = s.instances[i]
    b, one[FIRST_BATCH], one[LAST_BATCH] = one[FIRST_BATCH], -1, -1
    while b >= 0:
        after, before, at = s.batches[b, BATCH_NEXT], -1, one[FIRST_BATCH]
        s.quotas[b] = remaining_s(s, b)
        while at >= 0 and s.quotas[at] <= s.quotas[b]:
            before, at = at, s.batches[at, BATCH_NEXT]
        s.batches[b, BATCH_NEXT] = at
        if before < 0:
            one[FIRST_BATCH] = b
        else:
            s.batches[before, BATCH_NEXT] = b
        if at < 0:
            one[LAST_BATCH] = b
        b = after


@inner_kernel
def remaining_s(s, b):
    """Seconds that a batch still takes: while prompts wait those alone, then its longest output at the present pace."""
    batch, prompts_s, context, longest = s.batches[b], 0.0, 0, 0
    r = batch[BATCH_HEAD]
    while r >= 0:
        row = s.requests[r]
        if row[KV] != ON_GPU:
            prompts_s += prompt_s(s.models.prefill, batch[BATCH_MODEL], row[PROMPT] + row[MADE])
        context += row[PROMPT] + row[MADE]
        longest = max(longest, row[OUTPUT] - row[MADE])
        r = row[NEXT]
    if batch[BATCH_WAITING] > 0:
        return prompts_s
    return longest * decode_step_s(s.models.decode, batch[BATCH_MODEL], context, batch[BATCH_COUNT])
