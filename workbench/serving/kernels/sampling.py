"""What an autoscaler sees of its model, and how many instances it therefore wants."""

from workbench.jit import inner_kernel
from workbench.serving.kernels.layout import (
    BEGIN,
    BEHIND,
    BLOCK,
    BLOCKS,
    FREE,
    NEED,
    NEXT,
    NEXT_PREFILL,
    OUTSTANDING,
    PREFILL_HEAD,
    PREFILLING,
    QUEUE_HEAD,
    QUEUED,
    STORED,
    WAITING,
    WAITING_TOKENS,
)
from workbench.serving.kernels.scaled_layout import (
    ARRIVED,
    CHANGES,
    DOWN_TICKS,
    KIND,
    MAX_ROWS,
    MIN_ROWS,
    PAR,
    PIPED,
    ROW_STATE,
    S_ARRIVED,
    S_BLOCKS,
    S_OUTSTANDING,
    S_PROMPT,
    S_STORED,
    S_WAITING,
    SCRAPE,
    STARTING,
    TICK,
    TICK_S,
    TICKS,
    TICKS_USED,
    UP_STATE,
    UP_TICKS,
    WANTED,
)
from workbench.serving.policy.scalers import BACKLOG, ROLES
from workbench.serving.policy.scaling import decide, decide_role


@inner_kernel
def sample(state, scaled, router, m):
    """Note the load of a model at this tick; its instances have been brought up to now."""
    seen, line = scaled.samples[scaled.counts[TICK] % scaled.samples.shape[0], m], router.lines[m]
    outstanding, blocks, prompt = 0, 0, line[WAITING_TOKENS]
    for k in range(line[BEGIN], line[BEHIND]):
        one = state.instances[router.members[k]]
        outstanding += one[OUTSTANDING]
        blocks += one[BLOCKS] - one[FREE]
        if scaled.models[m, KIND] == BACKLOG or scaled.models[m, KIND] == ROLES:  # only these look at it
            prompt += prompt_tokens(state, one)
    seen[S_WAITING], seen[S_OUTSTANDING], seen[S_PROMPT] = line[WAITING], outstanding, prompt
    seen[S_BLOCKS], seen[S_ARRIVED] = blocks, scaled.models[m, ARRIVED]
    scaled.models[m, ARRIVED] = 0
    _sample_role(state, router, scaled.links, m, seen)


@inner_kernel
def _sample_role(state, router, links, m, seen):
    """Note what only groups with roles have: tokens with blocks in use; nobody who waits to decode has a prompt."""
    if links is None:
        return
    stored = 0
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        one = state.instances[router.members[k]]
        stored += (one[BLOCKS] - one[FREE]) * one[BLOCK]
    seen[S_STORED] = stored
    if m >= router.lines.shape[0] // 2:
        seen[S_PROMPT] -= router.lines[m, WAITING_TOKENS]


@inner_kernel
def prompt_tokens(state, one):
    """Tokens of an instance's requests that are still to be prefilled."""
    requests, tokens = state.requests, 0
    r = one[QUEUE_HEAD]
    for _ in range(one[QUEUED]):
        tokens += requests[r, NEED]
        r = requests[r, NEXT]
    r = one[PREFILL_HEAD]
    for _ in range(one[PREFILLING]):
        tokens += requests[r, NEED] - requests[r, STORED]
        r = requests[r, NEXT_PREFILL]
    return tokens


@inner_kernel
def count_rows(rows, router, m, row_state):
    """How many rows of a model are in a state."""
    count = 0
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        if rows[router.members[k], ROW_STATE] == row_state:
            count += 1
    return count


@inner_kernel
def count_changing(scaled, router, links, m):
    """How many rows of the model drain to take the role of a group that decodes; none that wait for one to send KV to,
    where there is none."""
    count = 0
    if links is None or m < router.lines.shape[0] // 2:
        return count
    if count_rows(scaled.rows, router, m, UP_STATE) + count_rows(scaled.rows, router, m, STARTING) == 0:
        return count
    other = m - router.lines.shape[0] // 2
    for k in range(router.lines[other, BEGIN], router.lines[other, BEHIND]):
        count += scaled.rows[router.members[k], CHANGES]
    return count


@inner_kernel
def wanted(scaled, router, m, now_s):
    """How many instances of a model should be up or starting after this tick; logged."""
    tick, model = scaled.counts[TICK], scaled.models[m]
    starting = count_rows(scaled.rows, router, m, STARTING) + count_rows(scaled.rows, router, m, PIPED)
    starting += count_changing(scaled, router, scaled.links, m)
    n = count_rows(scaled.rows, router, m, UP_STATE) + starting
    ring = scaled.samples.shape[0]
    seen = scaled.samples[(tick - scaled.counts[SCRAPE]) % ring, m]
    want = decide(
        model[KIND], scaled.reals[m, PAR:], seen[S_WAITING], seen[S_OUTSTANDING], seen[S_PROMPT], seen[S_BLOCKS],
        seen[S_ARRIVED], n, starting, scaled.clock[TICK_S],
    )  # fmt: skip
    if model[KIND] == ROLES:
        want = _role_wanted(scaled, router, scaled.links, m, n)
    scaled.samples[tick % ring, m, WANTED] = min(max(want, model[MIN_ROWS]), model[MAX_ROWS])
    want = steadied(scaled.samples, m, tick, n, model[UP_TICKS], model[DOWN_TICKS])
    entry = scaled.counts[TICKS_USED]
    log = scaled.logs[TICKS, entry]
    log[0], log[1], log[2], log[3] = now_s, m, want, n
    scaled.counts[TICKS_USED] = entry + 1
    return want


@inner_kernel
def _role_wanted(scaled, router, links, m, n):
    """How many instances of one role policy *roles* wants where there are `n`; it looks at both of the model's."""
    if links is None:
        return n
    models, place = router.lines.shape[0] // 2, (scaled.counts[TICK] - scaled.counts[SCRAPE]) % scaled.samples.shape[0]
    first, second = scaled.samples[place, m % models], scaled.samples[place, m % models + models]
    decoding = m % models + models
    decoders = count_rows(scaled.rows, router, decoding, UP_STATE)
    decoders += count_rows(scaled.rows, router, decoding, STARTING)
    decoders += count_changing(scaled, router, links, decoding)
    return decide_role(
        m >= models, scaled.reals[m, PAR:], first[S_PROMPT], first[S_STORED], first[S_BLOCKS] + second[S_BLOCKS], n,
        decoders,
    )  # fmt: skip


@inner_kernel
def steadied(samples, m, tick, n, up_ticks, down_ticks):
    """What is wanted if it has been more, or less, than `n` at so many ticks in a row, this one included; else `n`.

    The least of those that were more, the most of those that were less.
    """
    ring = samples.shape[0]
    more, less = samples[tick % ring, m, WANTED], samples[tick % ring, m, WANTED]
    for back in range(1, max(up_ticks, down_ticks)):
        before = n if back >= tick else samples[(tick - back) % ring, m, WANTED]  # ticks count from 1
        if back < up_ticks:
            more = min(more, before)
        if back < down_ticks:
            less = max(less, before)
    if more > n:
        return more
    return less if less < n else n
