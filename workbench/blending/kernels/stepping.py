"""The step loop of an offline batch, compiled.

Time is counted in steps, numbered from 0; how long each takes follows from its log and decides nothing. A step:

1. Everyone who decodes needs room for one token. Idle segments go first, the longest idle first; while room is still
   short, whoever began to decode last is swapped out to the host, with a copy of what it shares, and joins a queue.
2. Those swapped out come back, first in first out, while they fit. While anyone waits there, nobody new is admitted.
3. The dense batch is chosen: the cap, or what balances the KV reads of the step (FEEDBACK, while requests below the
   density of all are in flight and the left end stands in a unit above it).
4. Prompt tokens fill what the decode tokens leave of it, first from the right end, then from the left. A request is
   admitted when its first token is computed and it fits; segments that it shares and that are there cost nothing, the
   others are there from then on. With OPEN each end computes while its credit, which grows by C_X a step, is above
   zero; the left end then fills the last tile, a whole one where the step would hold nothing.
5. Without retention, segments that nobody uses are dropped; what becomes unused at the end of a step stays until here.
6. Everyone who decodes reads its context with the new token, and makes it. Whose output is complete leaves with all it
   held, by their numbers. Whose prompt is complete decodes from the next step on.
"""

import numpy as np

from workbench.blending.kernels.admitting import compute_prompts, split_pool
from workbench.blending.kernels.decoding import bring_back, drop_idle, end_step, make_room
from workbench.blending.kernels.flights import expire
from workbench.blending.kernels.layout import (
    DECODES,
    FEEDBACK,
    HELD,
    KV_READ,
    LEFT,
    LOG_COLUMNS,
    OPEN,
    PAIRS,
    RIGHT,
    SINGLE,
    TOKENS,
)
from workbench.blending.kernels.prefixes import SHARED
from workbench.blending.kernels.state import (
    BUDGET,
    COMPUTE_LEFT,
    CONTEXT,
    CREDIT,
    DECODING,
    DONE,
    HEAVY,
    KV_LEFT,
    NEXT,
    PRIVATE,
    SWAPS,
    new_state,
)
from workbench.blending.policy.balance import TILE, balanced_batch, tiled_up
from workbench.jit import inner_kernel, kernel


@kernel
def run_steps(jobs, nodes, order, rules):
    """Serve the requests of an order; returns the log of steps (int64[k, 5]), the rows of requests and the swaps.

    Parameters: see `layout`. The caller has made sure that every request fits the pool alone.
    """
    state = new_state(jobs, nodes, order, rules)
    number = state.number
    log = np.empty((4096, LOG_COLUMNS), np.int64)
    step = 0
    while number[DONE] < order.request.size:
        for side in range(2):
            expire(state.rows[side], state.count[side], step)
        make_room(jobs, nodes, rules, state, step)
        bring_back(jobs, nodes, rules, state, step)
        decodes = number[DECODING]
        read = number[CONTEXT] + decodes
        tokens, pairs = _prompts(jobs, nodes, order, rules, state, step, decodes, read)
        if not rules.retain:
            drop_idle(nodes, state)
        end_step(jobs, nodes, order, rules, state, step)
        if step == log.shape[0]:
            longer = np.empty((2 * step, LOG_COLUMNS), np.int64)
            longer[:step] = log
            log = longer
        log[step, TOKENS], log[step, KV_READ], log[step, PAIRS] = decodes + tokens, read, pairs
        log[step, HELD], log[step, DECODES] = number[PRIVATE] + state.pool.total[SHARED], decodes
        state.real[COMPUTE_LEFT] -= decodes + tokens
        state.real[KV_LEFT] -= read
        step += 1
    return log[:step], state.request, number[SWAPS]


@inner_kernel
def _prompts(jobs, nodes, order, rules, state, step, decodes, read):
    """Fill the dense batch with prompt tokens; returns how many and the growth of squared positions."""
    number, real = state.number, state.real
    waiting = number[NEXT + LEFT] <= number[NEXT + RIGHT]
    if rules.scan == SINGLE:
        return compute_prompts(jobs, nodes, order, rules, state, LEFT, step, max(rules.batch - decodes, 0), False)
    if waiting:
        split_pool(order, rules, state)
    batch = rules.batch
    blends = rules.scan == FEEDBACK and waiting and number[HEAVY] > 0
    if blends and order.density[order.unit[number[NEXT + LEFT]]] > rules.density:
        batch = balanced_batch(float(read), real[COMPUTE_LEFT], real[KV_LEFT], rules.batch)
    tokens, pairs = 0, 0
    on_credit = rules.scan == OPEN
    for side in (RIGHT, LEFT):
        if on_credit:
            most = max(real[BUDGET + side], float(TILE))
            real[CREDIT + side] = min(real[CREDIT + side] + real[BUDGET + side], most)
        more, grown = compute_prompts(
            jobs, nodes, order, rules, state, side, step, max(batch - decodes - tokens, 0), on_credit
        )
        tokens, pairs = tokens + more, pairs + grown
    if on_credit:
        rest = min(tiled_up(max(decodes + tokens, 1)), rules.batch) - decodes - tokens
        more, grown = compute_prompts(jobs, nodes, order, rules, state, LEFT, step, rest, False)
        tokens, pairs = tokens + more, pairs + grown
    return tokens, pairs
