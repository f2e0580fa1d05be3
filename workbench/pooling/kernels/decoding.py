"""Decoding by turns (Algorithm 2): which batch takes a request, and instances that give each batch its quota."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.pooling.kernels.caches import call, give_up_calls, leave, next_in, uncall
from workbench.pooling.kernels.emitting import emit, finish
from workbench.pooling.kernels.layout import (
    ACT_S,
    ASKED,
    BATCH_COUNT,
    BATCH_HEAD,
    BATCH_MODEL,
    BATCH_NEXT,
    BATCH_TAIL,
    BUSY_S,
    CLOCK_S,
    CLOCKED,
    DECODE_S,
    DECODES,
    END_S,
    ENDING,
    FETCHING,
    FIRST_BATCH,
    IDLE,
    IN_NOW,
    IN_ROUND,
    IN_STEP,
    IS_DECODE,
    KV,
    LOADING,
    MADE,
    MODEL,
    NEXT,
    ON_GPU,
    OUTPUT,
    OUTS,
    PLACE,
    PROMPT,
    QUIET,
    READY_S,
    RESIDENT,
    SINCE_SWITCH_S,
    STAGE,
    STEP_S,
    TIMED,
    TURN,
    TURN_FROM_S,
    TURN_REQUESTS,
    TURN_TOKENS,
    TURNS_USED,
    USED_BYTES,
    WAITING_IN,
    WAITING_KV,
    WAITING_OUT,
    WANTED,
    WORKING,
)
from workbench.pooling.kernels.rounds import add_last, batch_blocks, begin_round, fits, is_full, new_batch
from workbench.pooling.kernels.switching import begin_switch
from workbench.pooling.policy.memory import AHEAD_TO_RUN, blocks_of
from workbench.pooling.policy.names import AFTER_FIRST_STEP
from workbench.pooling.policy.steps import decode_step_s


@inner_kernel
def poke(s, i, now):
    """Let an instance that is idle, waits or sleeps look again."""
    stage = s.instances[i, STAGE]
    if stage != LOADING and stage != FETCHING and stage != TIMED and stage != WORKING:
        s.times[i, ACT_S] = now


@inner_kernel
def hand_over(s, r, now):
    """Give a request to the first batch of its model with room, else as a new batch to the shortest work list."""
    model = s.requests[r, MODEL]
    home = s.models.home[model]
    best, fewest = -1, 0
    for i in range(s.first[home], s.first[home + 1]):
        if s.instances[i, IS_DECODE] == 0:
            continue
        b, count = s.instances[i, FIRST_BATCH], 0
        while b >= 0:
            batch = s.batches[b]
            if batch[BATCH_COUNT] > 0:
                count += 1
                if batch[BATCH_MODEL] == model and fits(s, b, r):
                    enter(s, i, b, r, now)
                    return
            b = batch[BATCH_NEXT]
        if best < 0 or count < fewest:
            best, fewest = i, count
    enter(s, best, new_batch(s, best, model), r, now)


@inner_kernel
def enter(s, i, b, r, now):
    """Put a request into a batch; where that has its turn, its KV cache is called at once."""
    one = s.instances[i]
    s.requests[r, DECODES] = i
    add_last(s, b, r)
    if one[TURN] == b and one[ASKED] == 1 and one[ENDING] == 0:
        call(s, r)
        next_in(s, i, now)
    poke(s, i, now)


@inner_kernel
def act_decode(s, i, now):
    """What an instance does next: a turn, in it a switch, a wait or a step, or the end of the turn."""
    one = s.instances[i]
    s.times[i, END_S] = np.inf
    one[STAGE] = IDLE
    while True:
        if one[TURN] < 0:
            b = next_turn(s, i, now)
            if b < 0:
                if not begin_round(s, i, now):
                    return
                continue
            begin_turn(s, i, b, now)
        b = one[TURN]
        if one[ENDING] == 1:
            if one[IN_NOW] >= 0:
                one[STAGE] = WAITING_IN
                return
            end_turn(s, i, now)
            continue
        if (one[RESIDENT] != s.batches[b, BATCH_MODEL] or one[ASKED] == 0) and s.rules.overlap == 0 and one[OUTS] > 0:
            one[STAGE] = WAITING_OUT
            return
        if one[RESIDENT] != s.batches[b, BATCH_MODEL]:
            begin_switch(s, i, s.batches[b, BATCH_MODEL], now)
            return
        if one[ASKED] == 0:
            call_all(s, i, b, now)
        if over(s, i, b, now):
            one[ENDING] = 1
            give_up_calls(s, i)
            continue
        make_room(s, i, b, now)
        if not begin_step(s, i, b, now):
            one[STAGE] = WAITING_KV
            return
        return


@inner_kernel
def next_turn(s, i, now):
    """The next batch of the round that needs tokens, -1 where the round is over."""
    one = s.instances[i]
    b = one[FIRST_BATCH] if one[PLACE] < 0 else s.batches[one[PLACE], BATCH_NEXT]
    while b >= 0:
        if s.batches[b, IN_ROUND] == 1 and s.batches[b, BATCH_COUNT] > 0 and not is_full(s, b, now):
            return b
        b = s.batches[b, BATCH_NEXT]
    return -1


@inner_kernel
def begin_turn(s, i, b, now):
    """Give a batch its turn: KV caches of others leave the GPU, and with overlap those of its own are called."""
    one, real = s.instances[i], s.reals[i]
    one[TURN], one[CLOCKED], one[ENDING], one[ASKED], one[TURN_TOKENS] = b, 0, 0, 0, 0
    one[TURN_REQUESTS] = s.batches[b, BATCH_COUNT]
    real[TURN_FROM_S], real[READY_S] = now, now
    other = one[FIRST_BATCH]
    while other >= 0:
        if other != b:
            all_leave(s, i, other, now)
        other = s.batches[other, BATCH_NEXT]
    if s.rules.overlap == 1:
        call_all(s, i, b, now)


@inner_kernel
def all_leave(s, i, b, now):
    """Send the KV caches of a batch that are on the GPU to the host."""
    r = s.batches[b, BATCH_HEAD]
    while r >= 0:
        if s.requests[r, KV] == ON_GPU:
            leave(s, i, r, now)
        r = s.requests[r, NEXT]


@inner_kernel
def call_all(s, i, b, now):
    """Call the KV caches of a batch that are in the host."""
    s.instances[i, ASKED] = 1
    r = s.batches[b, BATCH_HEAD]
    while r >= 0:
        call(s, r)
        r = s.requests[r, NEXT]
    next_in(s, i, now)


@inner_kernel
def over(s, i, b, now):
    """Whether a turn is over: nobody is left, the quota is used up, or all are far enough ahead."""
    one = s.instances[i]
    if s.batches[b, BATCH_COUNT] == 0:
        return True
    if one[CLOCKED] == 0:
        return False
    return now - s.reals[i, CLOCK_S] >= s.quotas[b] or is_full(s, b, now)


@inner_kernel
def make_room(s, i, b, now):
    """Where a batch has outgrown the KV cache, its last requests become a batch that waits for the next round."""
    batch = s.batches[b]
    if batch_blocks(s, b, AHEAD_TO_RUN) <= s.models.capacity[batch[BATCH_MODEL]]:
        return
    other = new_batch(s, i, batch[BATCH_MODEL])
    while batch[BATCH_COUNT] > 1 and batch_blocks(s, b, AHEAD_TO_RUN) > s.models.capacity[batch[BATCH_MODEL]]:
        before, r = -1, batch[BATCH_HEAD]
        while s.requests[r, NEXT] >= 0:
            before, r = r, s.requests[r, NEXT]
        s.requests[before, NEXT], batch[BATCH_TAIL] = -1, before
        batch[BATCH_COUNT] -= 1
        s.requests[r, NEXT] = s.batches[other, BATCH_HEAD]
        s.batches[other, BATCH_HEAD] = r
        if s.batches[other, BATCH_COUNT] == 0:
            s.batches[other, BATCH_TAIL] = r
        s.batches[other, BATCH_COUNT] += 1
        if s.requests[r, KV] == ON_GPU:
            leave(s, i, r, now)
        elif s.requests[r, KV] == WANTED:
            uncall(s, i, r)


@inner_kernel
def begin_step(s, i, b, now):
    """Decode one token of every request whose KV cache is there; False where that has to be waited for."""
    batch, real = s.batches[b], s.reals[i]
    context, ready, r = 0, 0, batch[BATCH_HEAD]
    while r >= 0:
        row = s.requests[r]
        if row[KV] == ON_GPU:
            ready += 1
            context += row[PROMPT] + row[MADE]
        r = row[NEXT]
    if ready == 0 or (s.rules.overlap == 0 and ready < batch[BATCH_COUNT]):
        return False
    r = batch[BATCH_HEAD]
    while r >= 0:
        s.requests[r, IN_STEP] = 1 if s.requests[r, KV] == ON_GPU else 0
        r = s.requests[r, NEXT]
    real[STEP_S] = decode_step_s(s.models.decode, batch[BATCH_MODEL], context, ready)
    s.instances[i, STAGE], s.times[i, END_S] = WORKING, now + real[STEP_S]
    if s.instances[i, CLOCKED] == 0:
        real[CLOCK_S] = now
    return True


@inner_kernel
def end_steps(s, i, now, until_s):
    """End a step, and go on with the turn as long as steps begin and end before `until_s`."""
    end_step(s, i, now)
    while now < until_s and goes_on(s, i, now):
        if not s.times[i, END_S] < until_s:
            return
        now, s.times[i, END_S] = s.times[i, END_S], np.inf
        end_step(s, i, now)
    if s.instances[i, STAGE] != WORKING:
        s.times[i, ACT_S] = now


@inner_kernel
def goes_on(s, i, now):
    """Begin the next step of a turn, if nothing else is to be decided."""
    b = s.instances[i, TURN]
    if over(s, i, b, now) or batch_blocks(s, b, AHEAD_TO_RUN) > s.models.capacity[s.batches[b, BATCH_MODEL]]:
        return False
    return begin_step(s, i, b, now)


@inner_kernel
def end_step(s, i, now):
    """The tokens of a step come; who has all of its own leaves."""
    one, real = s.instances[i], s.reals[i]
    batch = s.batches[one[TURN]]
    block_bytes = s.models.block_bytes[batch[BATCH_MODEL]]
    real[BUSY_S] += real[STEP_S]
    real[SINCE_SWITCH_S] += real[STEP_S]
    before, r = -1, batch[BATCH_HEAD]
    while r >= 0:
        row = s.requests[r]
        after = row[NEXT]
        if row[IN_STEP] == 1:
            row[IN_STEP] = 0
            s.moments[r, DECODE_S] += real[STEP_S]
            held = blocks_of(row[PROMPT] + row[MADE], s.rules.block_tokens)
            emit(s, r, now)
            one[TURN_TOKENS] += 1
            if row[MADE] >= row[OUTPUT]:
                one[USED_BYTES] -= held * block_bytes
                if before < 0:
                    batch[BATCH_HEAD] = after
                else:
                    s.requests[before, NEXT] = after
                if after < 0:
                    batch[BATCH_TAIL] = before
                batch[BATCH_COUNT] -= 1
                finish(s, r, now)
                r = after
                continue
            one[USED_BYTES] += (blocks_of(row[PROMPT] + row[MADE], s.rules.block_tokens) - held) * block_bytes
        before, r = r, after
    if one[CLOCKED] == 0:
        one[CLOCKED] = 1
        if s.rules.clock == AFTER_FIRST_STEP:
            real[CLOCK_S] = now
    one[STAGE] = IDLE


@inner_kernel
def end_turn(s, i, now):
    """A turn is over: where others wait, the batch's KV caches leave the GPU."""
    one, real = s.instances[i], s.reals[i]
    b, others, at = one[TURN], 0, one[FIRST_BATCH]
    while at >= 0:
        others += 1 if at != b and s.batches[at, BATCH_COUNT] > 0 else 0
        at = s.batches[at, BATCH_NEXT]
    if others > 0:
        all_leave(s, i, b, now)
    one[PLACE], one[TURN] = b, -1
    if s.shared[QUIET] == 0:
        k = s.shared[TURNS_USED]
        if k < s.turns.shape[0]:
            line = s.turns[k]
            line[0], line[1], line[2], line[3] = real[TURN_FROM_S], real[READY_S], now, i
            line[4], line[5] = s.batches[b, BATCH_MODEL], s.quotas[b]
            line[6], line[7] = one[TURN_REQUESTS], one[TURN_TOKENS]
        s.shared[TURNS_USED] = k + 1
