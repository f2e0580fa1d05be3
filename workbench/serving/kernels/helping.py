"""Rows that help others of their group with prompts while their own weights are on their way."""

import math

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.advancing import advance
from workbench.serving.kernels.layout import (
    ARRIVAL_S,
    BEGIN,
    BEHIND,
    BOUNDARY,
    CHUNK,
    DECODING,
    GOING,
    HOLDS,
    ITERATION,
    MODEL,
    NEED,
    NEXT,
    NEXT_PREFILL,
    PREFILL_HEAD,
    PREFILLING,
    QUEUE_HEAD,
    QUEUED,
    STEP_BUDGET,
    STEP_DECODES,
    STEP_FINISHES,
    STEP_PREFILLS,
    STEP_S,
    STORED,
    WAITING_TOKENS,
)
from workbench.serving.kernels.roles_events import first_boundary
from workbench.serving.kernels.roles_layout import (
    END_S,
    ENDED,
    FIRST_FLOW,
    FIRST_OP,
    FLOWING,
    FLOWS_USED,
    GROUP,
    HOP_AT,
    HOPS,
    KIND,
    LEFT_BYTES,
    NEAR,
    OP,
    OPS_USED,
    RATE,
    SENDERS,
    SINCE_S,
    STOP_S,
    UNDER_WAY,
)
from workbench.serving.kernels.sampling import prompt_tokens
from workbench.serving.kernels.scaled_layout import (
    ACTIVATION_S,
    ASSISTS,
    ASSISTS_USED,
    HELPED,
    HELPS,
    LAYERS,
    LIVE,
    LOGS_SHORT,
    PROMISE_S,
    ROW_STATE,
    UP_STATE,
    WAITS,
    WEIGHT_BYTES,
)
from workbench.serving.policy.helping import helped_s, ready_layers, worth_helping, would_break

WHERE_WORTH, WHERE_BROKEN = 2, 3
"""What `LIVE` holds where help has to pay, and where a promise would be broken besides."""


@inner_kernel
def watch_helped(state, scaled, router, links, to_s):
    """What `roles_events.watch` does, and steps with prompts of live groups end and begin in sight of all others."""
    live = False
    for m in range(scaled.models.shape[0]):
        live |= scaled.models[m, LIVE] > 0
    if live:
        for j in range(scaled.rows.shape[0]):
            if scaled.models[state.instances[j, MODEL], LIVE] > 0:
                state.instances[j, HOLDS] = 1
    while True:
        first_s, second_s, j, ends = first_boundary(state)
        if not first_s < to_s:
            return 0, to_s
        if ends:
            return 0, first_s
        if scaled.models[state.instances[j, MODEL], LIVE] > 0:
            if scaled.counts[ASSISTS_USED] == scaled.logs.shape[1]:
                return LOGS_SHORT, first_s
            stop = advance(state, j, np.nextafter(first_s, np.inf))
            if stop == 0 and state.instances[j, GOING] == 1 and state.instances[j, STEP_PREFILLS] > 0:
                if state.instances[j, STEP_FINISHES] == 0:
                    state.instances[j, STEP_FINISHES] = 2
                _help(state, scaled, router, links, j, first_s)
        else:
            stop = advance(state, j, max(min(second_s, to_s), np.nextafter(first_s, np.inf)))
        if stop != 0:
            return stop, first_s


@inner_kernel
def _help(state, scaled, router, links, j, now_s):
    """A step with prompts has begun on a row: it is shorter if somebody helps."""
    one, m = state.instances[j], state.instances[j, MODEL]
    if scaled.rows[j, ROW_STATE] != UP_STATE or links.counts[FIRST_OP] == links.counts[OPS_USED]:
        return
    free, ready, o, helper = _free_tails(scaled, links, m, now_s)
    if free == 0 or _before(state, scaled, router, j, m) >= free:
        return
    prompt = _prompt_of_step(state, one)
    tokens = prompt + (one[DECODING] if one[STEP_DECODES] == 1 else 0)
    alone_s, total, hand_s = state.reals[j, STEP_S], scaled.models[m, LAYERS], scaled.reals[m, ACTIVATION_S]
    seconds = helped_s(alone_s, total, ready, tokens, hand_s)
    if not seconds < alone_s:
        return
    if scaled.models[m, LIVE] >= WHERE_WORTH:
        in_line = router.lines[m, WAITING_TOKENS] if m < router.lines.shape[0] // 2 else 0  # else they have prompts
        waiting = math.ceil((prompt_tokens(state, one) + in_line) / prompt)
        left_s = _left_s(links, o, now_s)
        if not worth_helping(waiting, ready, total, alone_s / total, hand_s * tokens, left_s):
            return
        if scaled.models[m, LIVE] == WHERE_BROKEN:
            age_s = now_s - _oldest_s(state, one)
            whole_s = _whole_s(links, o, scaled.reals[m, WEIGHT_BYTES] / links.ops[o, SENDERS])
            if not would_break(scaled.models[m, WAITS], age_s, whole_s, left_s, alone_s, scaled.reals[m, PROMISE_S]):
                return
    state.reals[j, STEP_S] = seconds
    state.reals[j, BOUNDARY] = now_s + seconds
    entry = scaled.counts[ASSISTS_USED]
    log = scaled.logs[ASSISTS, entry]
    log[0], log[1], log[2], log[3], log[4], log[5] = now_s, np.nan, helper, j, one[ITERATION], ready
    scaled.counts[ASSISTS_USED] = entry + 1
    scaled.rows[j, HELPED] = entry
    scaled.rows[helper, HELPS] += 1


@inner_kernel
def end_help(scaled, j, end_s):
    """A step of a row is over: at its end, or lost if that is NaN."""
    entry = scaled.rows[j, HELPED]
    if entry >= 0:
        scaled.logs[ASSISTS, entry, 1] = end_s
        scaled.rows[np.int64(scaled.logs[ASSISTS, entry, 2]), HELPS] -= 1
        scaled.rows[j, HELPED] = -1


@inner_kernel
def end_helps(state, scaled, now_s):
    """All helped steps that end now are over."""
    for j in range(scaled.rows.shape[0]):
        if scaled.rows[j, HELPED] >= 0 and state.reals[j, BOUNDARY] == now_s:
            end_help(scaled, j, now_s)


@inner_kernel
def _prompt_of_step(state, one):
    """Tokens of prompts in the step that has just begun."""
    left, total, r = one[STEP_BUDGET], 0, one[PREFILL_HEAD]
    for _ in range(one[STEP_PREFILLS]):
        k = min(one[CHUNK], state.requests[r, NEED] - state.requests[r, STORED], left)
        left -= k
        total += k
        r = state.requests[r, NEXT_PREFILL]
    return total


@inner_kernel
def _oldest_s(state, one):
    """When the first of those came whose prompts are not computed yet."""
    first_s, r = np.inf, one[QUEUE_HEAD]
    for _ in range(one[QUEUED]):
        first_s = min(first_s, state.moments[r, ARRIVAL_S])
        r = state.requests[r, NEXT]
    r = one[PREFILL_HEAD]
    for _ in range(one[PREFILLING]):
        first_s = min(first_s, state.moments[r, ARRIVAL_S])
        r = state.requests[r, NEXT_PREFILL]
    return first_s


@inner_kernel
def _before(state, scaled, router, j, m):
    """How many rows of a group have a better claim to help."""
    own, count = prompt_tokens(state, state.instances[j]), 0
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        i = router.members[k]
        if i == j or scaled.rows[i, ROW_STATE] != UP_STATE or scaled.rows[i, HELPED] >= 0:
            continue
        claim = prompt_tokens(state, state.instances[i])
        count += 1 if claim > own or (claim == own and i < j) else 0
    return count


@inner_kernel
def _free_tails(scaled, links, m, now_s):
    """How many tails may help rows of a group; the most layers that one has, its operation, and which row it is."""
    count, most, best, helper = 0, 0, np.int64(-1), np.int64(-1)
    for o in range(links.counts[FIRST_OP], links.counts[OPS_USED]):
        op = links.ops[o]
        if op[KIND] == ENDED or op[KIND] == NEAR or op[GROUP] != m or op[FLOWING] == 0:
            continue
        part = scaled.reals[m, WEIGHT_BYTES] / op[SENDERS]
        layers = ready_layers(scaled.models[m, LAYERS], _sent_share(links, o, part, now_s))
        if layers == 0:
            continue
        for entry in range(op[FIRST_FLOW], links.counts[FLOWS_USED]):
            if not _is_of(links, o, entry):
                continue
            tail = _tail(links, entry)
            if scaled.rows[tail, HELPS] > 0 or _is_earlier_tail(links, o, op[FIRST_FLOW], entry, tail):
                continue
            count += 1
            if layers > most:
                most, best, helper = layers, o, tail
    return count, most, best, helper


@inner_kernel
def _is_of(links, o, entry):
    """Whether a flow is of an operation, and has not been given up."""
    flow = links.flows[entry]
    return flow[OP] == o and (np.isnan(flow[STOP_S]) or not np.isnan(flow[END_S]))


@inner_kernel
def _tail(links, entry):
    """The last row that a flow passes."""
    return links.hops[np.int64(links.flows[entry, HOP_AT] + links.flows[entry, HOPS]) - 1, 0]


@inner_kernel
def _is_earlier_tail(links, o, first, entry, tail):
    before = first
    while before < entry and not (_is_of(links, o, before) and _tail(links, before) == tail):
        before += 1
    return before < entry


@inner_kernel
def _left_now(links, flow, now_s):
    """Bytes of a flow that are still to be sent."""
    if flow[RATE] == np.inf:
        return flow[LEFT_BYTES]
    return max(0.0, flow[LEFT_BYTES] - flow[RATE] * (now_s - links.clock[SINCE_S]))


@inner_kernel
def _sent_share(links, o, part, now_s):
    """What share of its bytes has come by the flow of an operation of which the least has."""
    least = np.inf
    for k in range(links.counts[UNDER_WAY]):
        flow = links.flows[links.active[k]]
        if flow[OP] == o:
            least = min(least, (part - _left_now(links, flow, now_s)) / part)
    return least


@inner_kernel
def _whole_s(links, o, part):
    """How long all of an operation takes at the rates that there are now."""
    most_s = 0.0
    for k in range(links.counts[UNDER_WAY]):
        flow = links.flows[links.active[k]]
        if flow[OP] == o:
            most_s = max(most_s, part / flow[RATE] if flow[RATE] > 0 else np.inf)
    return most_s


@inner_kernel
def _left_s(links, o, now_s):
    """How long what is left of an operation takes at the rates that there are now."""
    most_s = 0.0
    for k in range(links.counts[UNDER_WAY]):
        flow = links.flows[links.active[k]]
        if flow[OP] == o:
            most_s = max(most_s, _left_now(links, flow, now_s) / flow[RATE] if flow[RATE] > 0 else np.inf)
    return most_s
