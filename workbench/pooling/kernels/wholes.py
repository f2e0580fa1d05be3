"""The loop of whole requests: every instance works on its first batch, prompts first, until all of that is done."""

from typing import Any

import numpy as np

from workbench.jit import inner_kernel, lean_kernel
from workbench.pooling.kernels.emitting import emit, finish
from workbench.pooling.kernels.layout import (
    ACT_S,
    ACTIVE_S,
    ARRIVAL_S,
    BATCH_COUNT,
    BATCH_HEAD,
    BATCH_MODEL,
    BATCH_NEXT,
    BATCH_TAIL,
    BATCH_USED,
    BATCH_WAITING,
    BEGUN,
    BLOCKS,
    BUSY_S,
    DECODE_S,
    DECODES,
    END_S,
    FAILED,
    FINISHED,
    FIRST_BATCH,
    GROUP,
    IDLE,
    INSIDE_NOW,
    JOB,
    KV,
    LAST_BATCH,
    LOGS_SHORT,
    MADE,
    MODEL,
    NEXT,
    NEXT_ARRIVAL,
    NOWHERE,
    OLDEST,
    ON_GPU,
    OUTPUT,
    PREFILL_S,
    PROMPT,
    READY_S,
    REFUSED,
    REJECTED,
    RESIDENT,
    SPARES,
    STAGE,
    STATUS,
    STEP_S,
    SWITCH_FROM_S,
    SWITCHES_USED,
    SWITCHING_S,
    TARGET,
    TIMED,
    TURN,
    TURN_FROM_S,
    TURN_REQUESTS,
    TURN_TOKENS,
    TURNS_USED,
    WAIT_S,
    WORKING,
    State,
)
from workbench.pooling.kernels.placing import place, sort_batches
from workbench.pooling.kernels.turns import LOGS, ROWS, fresh
from workbench.pooling.policy.memory import AHEAD_TO_RUN, blocks_of
from workbench.pooling.policy.names import SHARED, SHORTEST
from workbench.pooling.policy.steps import decode_step_s, prompt_s


@lean_kernel
def run_wholes(s):
    """Let everything happen; `LOGS_SHORT` where a log had too few rows."""
    count = s.requests.shape[0]
    while True:
        time_s, act, who = np.inf, False, -1
        for i in range(s.times.shape[0]):
            if s.times[i, END_S] < time_s:
                time_s, who = s.times[i, END_S], i
        for i in range(s.times.shape[0]):
            if s.times[i, ACT_S] < time_s:
                time_s, act, who = s.times[i, ACT_S], True, i
        r = s.shared[NEXT_ARRIVAL]
        if r < count and s.moments[r, ARRIVAL_S] <= time_s:
            s.shared[NEXT_ARRIVAL] = r + 1
            come_in(s, r, s.moments[r, ARRIVAL_S])
        elif time_s == np.inf:
            break
        elif act:
            s.times[who, ACT_S] = np.inf
            decide(s, who, time_s)
        else:
            s.times[who, END_S] = np.inf
            end(s, who, time_s)
    short = s.shared[SWITCHES_USED] > s.switches.shape[0] or s.shared[TURNS_USED] > s.turns.shape[0]
    return LOGS_SHORT if short else FINISHED


@inner_kernel
def come_in(s, r, now):
    """A request arrives."""
    forget_late(s, now)
    row = s.requests[r]
    model = row[MODEL]
    row[BLOCKS] = blocks_of(row[PROMPT] + row[OUTPUT] + AHEAD_TO_RUN, s.rules.block_tokens)
    nowhere = s.rules.system == SHARED and s.models.place[model] < 0
    if row[REFUSED] == 1 or row[BLOCKS] > s.models.capacity[model] or nowhere:
        row[STATUS] = REJECTED
        return
    s.shared[INSIDE_NOW] += 1
    s.owners[s.models.owner[model]] += 1
    i = place(s, r)
    if s.rules.system == SHORTEST:
        for j in range(s.instances.shape[0]):
            sort_batches(s, j)
    if s.instances[i, STAGE] == IDLE:
        s.times[i, ACT_S] = now


@inner_kernel
def forget_late(s, now):
    """Requests that have waited too long for their prompt to begin fail."""
    oldest = s.shared[OLDEST]
    while oldest < s.requests.shape[0] and s.moments[oldest, ARRIVAL_S] + s.rules.give_up_s <= now:
        row = s.requests[oldest]
        if row[STATUS] == 0 and row[BEGUN] == 0:
            s.batches[row[GROUP], BATCH_WAITING] -= 1
            take_out(s, row[GROUP], oldest)
            finish(s, oldest, np.nan)
            row[STATUS] = FAILED
        oldest += 1
    s.shared[OLDEST] = oldest


@inner_kernel
def take_out(s, b, r):
    """Take a request out of its batch."""
    batch, before, at = s.batches[b], -1, s.batches[b, BATCH_HEAD]
    while at != r:
        before, at = at, s.requests[at, NEXT]
    after = s.requests[r, NEXT]
    if before < 0:
        batch[BATCH_HEAD] = after
    else:
        s.requests[before, NEXT] = after
    if after < 0:
        batch[BATCH_TAIL] = before
    batch[BATCH_COUNT] -= 1


@inner_kernel
def decide(s, i, now):
    """What an instance does next: another batch, a switch, a prompt or a decode step."""
    one = s.instances[i]
    one[STAGE] = IDLE
    drop_empty(s, i)
    b = one[FIRST_BATCH]
    if b != one[TURN]:
        change_batch(s, i, b, now)
    if b < 0:
        return
    batch = s.batches[b]
    model = batch[BATCH_MODEL]
    s.reals[i, ACTIVE_S] = now
    if s.rules.system != SHARED and one[RESIDENT] != model:
        one[RESIDENT], one[TARGET], one[STAGE] = -1, model, TIMED
        s.reals[i, SWITCH_FROM_S] = now
        s.times[i, END_S] = now + s.models.weight_bytes[model] / s.models.load_bytes_per_s[model]
        return
    context, waits, r = 0, -1, batch[BATCH_HEAD]
    while r >= 0:
        row = s.requests[r]
        if row[KV] == ON_GPU:
            context += row[PROMPT] + row[MADE]
        elif waits < 0:
            waits = r
        r = row[NEXT]
    if waits >= 0 and batch[BATCH_USED] + s.requests[waits, BLOCKS] <= s.models.capacity[model]:
        row = s.requests[waits]
        one[JOB] = waits
        if row[BEGUN] == 0:
            row[BEGUN] = 1
            s.moments[waits, WAIT_S] = now - s.moments[waits, ARRIVAL_S]
        batch[BATCH_USED] += row[BLOCKS]
        s.reals[i, STEP_S] = prompt_s(s.models.prefill, model, row[PROMPT] + row[MADE])
    else:
        one[JOB] = -1
        ready = batch[BATCH_COUNT] - batch[BATCH_WAITING]
        s.reals[i, STEP_S] = decode_step_s(s.models.decode, model, context, ready)
    one[STAGE], s.times[i, END_S] = WORKING, now + s.reals[i, STEP_S]


@inner_kernel
def drop_empty(s, i):
    """Batches without requests leave the list."""
    one, before, b = s.instances[i], -1, s.instances[i, FIRST_BATCH]
    while b >= 0:
        after = s.batches[b, BATCH_NEXT]
        if s.batches[b, BATCH_COUNT] == 0:
            if before < 0:
                one[FIRST_BATCH] = after
            else:
                s.batches[before, BATCH_NEXT] = after
            if after < 0:
                one[LAST_BATCH] = before
            if one[TURN] == b:
                note_turn(s, i, b, s.reals[i, READY_S])
                one[TURN] = -1
            s.spare[s.shared[SPARES]] = b
            s.shared[SPARES] += 1
        else:
            before = b
        b = after


@inner_kernel
def change_batch(s, i, b, now):
    """Another batch comes to the front; what is displaced loses its KV caches, and must compute them anew."""
    one = s.instances[i]
    old = one[TURN]
    if old >= 0:
        note_turn(s, i, old, now)
        if s.rules.system == SHORTEST:
            r = s.batches[old, BATCH_HEAD]
            while r >= 0:
                s.requests[r, KV] = NOWHERE
                r = s.requests[r, NEXT]
            s.batches[old, BATCH_WAITING], s.batches[old, BATCH_USED] = s.batches[old, BATCH_COUNT], 0
    one[TURN], one[TURN_TOKENS] = b, 0
    s.reals[i, TURN_FROM_S], s.reals[i, READY_S] = now, now
    if b >= 0:
        one[TURN_REQUESTS] = s.batches[b, BATCH_COUNT]


@inner_kernel
def end(s, i, now):
    """A switch or a step is over; instances that hold several models go on with the next one's batch."""
    one, real = s.instances[i], s.reals[i]
    s.times[i, ACT_S] = now
    if one[STAGE] == TIMED:
        one[RESIDENT], one[TARGET] = one[TARGET], -1
        real[SWITCHING_S] += now - real[SWITCH_FROM_S]
        k = s.shared[SWITCHES_USED]
        if k < s.switches.shape[0]:
            line = s.switches[k]
            line[0], line[1], line[2], line[3] = real[SWITCH_FROM_S], now, i, one[RESIDENT]
            line[4], line[5] = 0, s.models.weight_bytes[one[RESIDENT]]
        s.shared[SWITCHES_USED] = k + 1
        return
    b = one[TURN]
    batch = s.batches[b]
    real[BUSY_S] += real[STEP_S]
    real[READY_S] = now
    if one[JOB] >= 0:
        r = one[JOB]
        s.requests[r, KV], s.requests[r, DECODES] = ON_GPU, i
        batch[BATCH_WAITING] -= 1
        s.moments[r, PREFILL_S] += real[STEP_S]
        token(s, i, b, r, now)
    else:
        r = batch[BATCH_HEAD]
        while r >= 0:
            after = s.requests[r, NEXT]
            if s.requests[r, KV] == ON_GPU:
                s.moments[r, DECODE_S] += real[STEP_S]
                token(s, i, b, r, now)
            r = after
    if s.rules.system == SHARED and one[LAST_BATCH] != b:
        one[FIRST_BATCH] = batch[BATCH_NEXT]
        s.batches[one[LAST_BATCH], BATCH_NEXT] = b
        batch[BATCH_NEXT], one[LAST_BATCH] = -1, b


@inner_kernel
def token(s, i, b, r, now):
    """A request of a batch gets a token, and leaves with its last one."""
    row = s.requests[r]
    if row[OUTPUT] > 0:
        emit(s, r, now)
        s.instances[i, TURN_TOKENS] += 1
    if row[MADE] >= row[OUTPUT]:
        s.batches[b, BATCH_USED] -= row[BLOCKS]
        take_out(s, b, r)
        finish(s, r, now)


@inner_kernel
def note_turn(s, i, b, now):
    """Write down how long a batch was in front; not where models share an instance and alternate."""
    if s.rules.system == SHARED:
        return
    k = s.shared[TURNS_USED]
    if k < s.turns.shape[0]:
        line = s.turns[k]
        line[0], line[1], line[2], line[3] = s.reals[i, TURN_FROM_S], s.reals[i, TURN_FROM_S], now, i
        line[4], line[5] = s.batches[b, BATCH_MODEL], 0.0
        line[6], line[7] = s.instances[i, TURN_REQUESTS], s.instances[i, TURN_TOKENS]
    s.shared[TURNS_USED] = k + 1


def serve_wholes(requests: Any, models: Any, pool: Any, rules: Any) -> State:
    """Run a pool that serves whole requests; parameters are those of `workbench.pooling.model.lowered`."""
    rows = dict.fromkeys(LOGS, ROWS * requests.arrival_s.size + 1024)
    while True:
        state = fresh(requests, models, pool, rules, rows)
        finished = run_wholes(state) == FINISHED
        if finished:
            return state._replace(
                **{name: getattr(state, name)[: state.shared[used]] for name, (used, _) in LOGS.items()}
            )
        rows = {name: max(rows[name], int(state.shared[used])) for name, (used, _) in LOGS.items()}
