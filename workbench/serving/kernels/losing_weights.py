"""Rows that fail while they send, receive or pass on weights, and ways out of senders that fail."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.beginning import begin_loads, look_up
from workbench.serving.kernels.flows import drop_flow
from workbench.serving.kernels.loading import orphan_of, targets_of
from workbench.serving.kernels.roles_layout import (
    CAPACITY,
    CHAIN,
    ENDED,
    FIRST_OP,
    FLOWING,
    GROUP,
    INSTANCES,
    KIND,
    LEFT_BYTES,
    LOADING,
    MEMBERS,
    NEAR,
    NUMBER,
    OP,
    OPS_USED,
    RING,
    SENDERS,
    SENDERS_AT,
    UNDER_WAY,
)
from workbench.serving.kernels.rows import has_weights
from workbench.serving.kernels.scaled_layout import (
    CHOSEN,
    LOAD,
    MODEL_OF,
    OPERATIONS,
    POSITION,
    REROUTES,
    TARGETS,
    THERE_S,
    USES,
)
from workbench.serving.kernels.sending import (
    add_hop,
    begin_chain,
    begin_flow_of,
    end_operation,
    leave_operation,
    loads_in,
)


@inner_kernel
def lose_weights(scaled, router, links, j, loading, now_s):
    """A row has failed, and was loading or not: what it sent or passed on begins again, operation by operation."""
    before, after = scaled.counts[OPERATIONS], np.int64(-1)
    if loading:
        leave_operation(scaled, links, j, now_s)
    while True:
        orphan, group = orphan_of(scaled, router, scaled.rows[j, MODEL_OF], after, before)
        o = _next_with(links, j, after, before)
        if orphan < 0 and o < 0:
            return
        if o >= 0 and (orphan < 0 or links.ops[o, NUMBER] < orphan):
            after = links.ops[o, NUMBER]
            _lose_in(scaled, router, links, o, j, now_s)
        else:
            after = orphan
            _start_anew(scaled, router, group, targets_of(scaled, router, group, orphan), now_s)


@inner_kernel
def lose_way_out(scaled, router, links, p, now_s):
    """A port has failed, or is back: operations with a sender behind it begin again where that is wanted."""
    n = links.counts[INSTANCES]
    if links.ports[p, CAPACITY] > 0 or n <= p < 2 * n:
        return
    for o in range(links.counts[FIRST_OP], links.counts[OPS_USED]):
        op = links.ops[o]
        sent = op[KIND] >= CHAIN and op[FLOWING] > 0
        if sent and scaled.models[op[GROUP], REROUTES] == 1 and _sends(links, op, p if p < n else p - n):
            _begin_again(scaled, router, links, o, now_s)


@inner_kernel
def _sends(links, op, sender):
    sends = False
    for e in range(op[SENDERS_AT], op[SENDERS_AT] + op[SENDERS]):
        sends |= links.hops[e, 0] == sender
    return sends


@inner_kernel
def _begin_again(scaled, router, links, o, now_s):
    """All that an operation still loads starts anew."""
    count = _list_loads(scaled, links, o, np.int64(TARGETS), np.int64(-2), np.bool_(True), now_s)
    end_operation(scaled, links, o, now_s)
    _start_anew(scaled, router, links.ops[o, GROUP], count, now_s)


@inner_kernel
def _start_anew(scaled, router, m, count, now_s):
    """The targets start from what there is now."""
    look_up(scaled, m, now_s)
    begin_loads(scaled, router, m, count, now_s)


@inner_kernel
def _next_with(links, j, after, before):
    """The first operation with a number between two in which a row sends, receives or has received; -1 for none."""
    for o in range(links.counts[FIRST_OP], links.counts[OPS_USED]):
        op = links.ops[o]
        if op[KIND] == ENDED or not after < op[NUMBER] < before:
            continue
        for e in range(op[SENDERS]):
            entry = links.hops[op[SENDERS_AT] + e]
            if entry[0] == j and entry[1] == 1:
                return o
        if op[KIND] != NEAR and _position_in(links, op, j) >= 0:
            return o
    return np.int64(-1)


@inner_kernel
def _position_in(links, op, j):
    """The position of a row in an operation, -1 if it is not in there."""
    first = op[SENDERS_AT] + op[SENDERS]
    for e in range(first, first + op[MEMBERS]):
        if links.hops[e, 0] == j:
            return links.hops[e, 1]
    return np.int64(-1)


@inner_kernel
def _lose_in(scaled, router, links, o, j, now_s):
    """An operation loses a row."""
    op, needed, left = links.ops[o], False, 0
    for e in range(op[SENDERS_AT], op[SENDERS_AT] + op[SENDERS]):
        if links.hops[e, 1] == 1 and links.hops[e, 0] == j:
            links.hops[e, 1] = 0
            scaled.rows[j, USES] -= 1
            needed = True
        elif links.hops[e, 1] == 1:
            left += 1
    if op[KIND] == NEAR and left > 0:
        return
    if needed:
        _begin_again(scaled, router, links, o, now_s)
    else:
        _lose_link(scaled, router, links, o, np.int64(-1) if op[KIND] == RING else _position_in(links, op, j), now_s)


@inner_kernel
def _lose_link(scaled, router, links, o, position, now_s):
    """A row at some position has failed: those before it go on, those behind it begin again; of a ring all do."""
    op = links.ops[o]
    lost = _list_loads(scaled, links, o, np.int64(TARGETS), position, np.bool_(True), now_s)
    if lost == 0 and op[FLOWING] == 0:
        return
    sender = np.int64(-1) if op[KIND] == RING else _nearest(scaled, links, op, position)
    kept = _list_loads(scaled, links, o, np.int64(CHOSEN), position, np.bool_(False), now_s)
    op[LOADING] = kept
    k = 0
    while k < links.counts[UNDER_WAY]:
        entry = links.active[k]
        if links.flows[entry, OP] != o:
            k += 1
            continue
        drop_flow(links, entry, now_s)
        op[FLOWING] -= 1
        if kept > 0:
            begin_flow_of(links, o, links.hops[op[SENDERS_AT], 0], links.flows[entry, LEFT_BYTES], now_s)
            for i in range(kept):
                add_hop(links, scaled.lists[CHOSEN, i])
            break
    if lost > 0 and sender >= 0:
        begin_chain(scaled, links, op[GROUP], sender, np.int64(0), lost, np.int64(1), now_s)
    if op[LOADING] == 0:
        end_operation(scaled, links, o, now_s)
    if lost > 0 and sender < 0:
        _start_anew(scaled, router, op[GROUP], lost, now_s)


@inner_kernel
def _nearest(scaled, links, op, position):
    """Who has all weights and is nearest before a position of a chain, a row or N + a host; -1 for nobody."""
    first = op[SENDERS_AT] + op[SENDERS]
    for e in range(first + position - 1, first - 1, -1):
        if has_weights(scaled.rows[links.hops[e, 0]]):
            return links.hops[e, 0]
    sender = links.hops[op[SENDERS_AT], 0]
    if sender >= links.counts[INSTANCES] or has_weights(scaled.rows[sender]):
        return sender
    return np.int64(-1)


@inner_kernel
def _list_loads(scaled, links, o, place, position, lost, now_s):
    """List the rows that an operation still loads and whose weights are neither there nor come from before a position.

    Or, with `lost` False, all others that it loads; in the order of their loads. How many.
    """
    count, found = 0, scaled.lists[place]
    for j in range(scaled.rows.shape[0]):
        if not loads_in(scaled, links, j, o):
            continue
        behind = scaled.rows[j, POSITION] > position
        if lost != (behind and (position < -1 or not scaled.times[j, THERE_S] <= now_s)):
            continue
        k = count
        while k > 0 and scaled.rows[found[k - 1], LOAD] > scaled.rows[j, LOAD]:
            found[k] = found[k - 1]
            k -= 1
        found[k] = j
        count += 1
    return count
