"""Requests that decode: they begin, grow by a token a step, are swapped out and in, and finish."""

import math

from workbench.blending.kernels.admitting import enter, fits, make_free
from workbench.blending.kernels.flights import link, remove_row, unlink
from workbench.blending.kernels.layout import LEFT, RIGHT
from workbench.blending.kernels.prefixes import OLDEST, SHARED, drop_oldest, leave, unused_tokens, use
from workbench.blending.kernels.state import (
    AT,
    CONTEXT,
    DECODING,
    DONE,
    DUE,
    ENDS,
    FINISHED,
    FRESH,
    HEAVY,
    NEWEST_DECODE,
    PLACE,
    PRIVATE,
    SIDE,
    SINCE_STEP,
    SWAPPED,
    SWAPPED_FIRST,
    SWAPS,
)
from workbench.jit import inner_kernel


@inner_kernel
def _begin(jobs, rules, state, who, step, done):
    """Let a request decode from this step on; it has made so many tokens already."""
    number, row = state.number, state.request[who]
    row[ENDS] = step + jobs.output[who] - done - 1
    row[AT] = row[ENDS]
    if row[SIDE] == LEFT and rules.patience > 0.0:  # the step in which it has made too many, if it gets there
        row[AT] = min(row[ENDS], max(step + math.ceil(rules.patience * jobs.expected[who]) - done - 1, step))
    link(state.head, state.after, state.ahead, row[AT] % state.head.size, who)
    newest = number[NEWEST_DECODE]
    state.older[who], state.newer[who] = newest, -1
    if newest >= 0:
        state.newer[newest] = who
    number[NEWEST_DECODE] = who
    number[DECODING] += 1
    number[CONTEXT] += jobs.prompt[who] + done


@inner_kernel
def _stop(jobs, state, who, done):
    """Take a request out of those that decode, with what it holds; it has made so many tokens."""
    number, row = state.number, state.request[who]
    older, newer = state.older[who], state.newer[who]
    if older >= 0:
        state.newer[older] = newer
    if newer >= 0:
        state.older[newer] = older
    else:
        number[NEWEST_DECODE] = older
    number[DECODING] -= 1
    number[CONTEXT] -= jobs.prompt[who] + done
    number[PRIVATE] -= jobs.own[who] + done
    side = row[SIDE]
    remove_row(state.rows[side], state.count[side], row[DUE], row[SINCE_STEP])


@inner_kernel
def make_room(jobs, nodes, rules, state, step):
    """Before a step: room for a token of everyone who decodes, else whoever began last is swapped out."""
    number, total = state.number, state.pool.total
    make_free(nodes, rules, state, number[DECODING])
    while number[DECODING] > 0 and number[PRIVATE] + total[SHARED] + number[DECODING] > rules.capacity:
        who = number[NEWEST_DECODE]
        unlink(state.head, state.after, state.ahead, who)
        _stop(jobs, state, who, jobs.output[who] - (state.request[who, ENDS] - step + 1))
        leave(nodes.parent, nodes.tokens, state.pool, jobs.node[who])
        make_free(nodes, rules, state, number[DECODING])
        place = (number[SWAPPED_FIRST] + number[SWAPPED]) % state.swapped.size
        state.swapped[place] = who
        number[SWAPPED] += 1
        number[SWAPS] += 1
        state.request[who, ENDS] -= step  # decode steps to go, less one


@inner_kernel
def bring_back(jobs, nodes, rules, state, step):
    """Bring back those swapped out, the first one first, while they fit."""
    number = state.number
    while number[SWAPPED] > 0:
        who = state.swapped[number[SWAPPED_FIRST]]
        row = state.request[who]
        done = jobs.output[who] - row[ENDS] - 1
        held = jobs.own[who] + done
        finish, since = step + max(jobs.expected[who] - done, 1) - 1, step - 1 - held
        unused = unused_tokens(nodes.parent, nodes.tokens, state.pool, jobs.node[who])
        if not fits(rules, state, row[SIDE], step, held + 1, unused, finish, since):
            return
        use(nodes.parent, nodes.tokens, state.pool, jobs.node[who])
        number[SWAPPED_FIRST] = (number[SWAPPED_FIRST] + 1) % state.swapped.size
        number[SWAPPED] -= 1
        number[PRIVATE] += held
        enter(state, who, row[SIDE], step, finish, since)
        _begin(jobs, rules, state, who, step, done)
        make_free(nodes, rules, state, number[DECODING])


@inner_kernel
def end_step(jobs, nodes, order, rules, state, step):
    """After a step: who decodes has a token more, some are done; finished prompts decode from the next step."""
    number = state.number
    number[PRIVATE] += number[DECODING]
    number[CONTEXT] += number[DECODING]
    slot = step % state.head.size
    who, ready = state.head[slot], 0
    while who >= 0:
        following = state.after[who]
        row = state.request[who]
        unlink(state.head, state.after, state.ahead, who)
        if row[ENDS] == step:
            at = ready  # in order of their numbers
            while at > 0 and state.leaving[at - 1] > who:
                state.leaving[at] = state.leaving[at - 1]
                at -= 1
            state.leaving[at] = who
            ready += 1
        else:
            _move(state, who, step)
            row[AT] = row[ENDS]
            link(state.head, state.after, state.ahead, row[AT] % state.head.size, who)
        who = following
    for place in range(ready):
        who = state.leaving[place]
        row = state.request[who]
        _stop(jobs, state, who, jobs.output[who])
        leave(nodes.parent, nodes.tokens, state.pool, jobs.node[who])
        row[FINISHED] = step
        number[DONE] += 1
        if order.density[order.unit[row[PLACE]]] < rules.density:
            number[HEAVY] -= 1
    for place in range(number[FRESH]):
        _begin(jobs, rules, state, state.fresh[place], step + 1, 0)
    number[FRESH] = 0


@inner_kernel
def _move(state, who, step):
    """Let a request of the left end, longer than expected by far, count to the right one, as one that is late."""
    row = state.request[who]
    finish, since = row[DUE], row[SINCE_STEP]
    remove_row(state.rows[LEFT], state.count[LEFT], finish, since)
    enter(state, who, RIGHT, step, finish, since)


@inner_kernel
def drop_idle(nodes, state):
    """Drop every shared segment that nobody uses."""
    while state.pool.total[OLDEST] >= 0:
        drop_oldest(nodes.tokens, state.pool)
