"""Weights that go from row to row over links that KV uses too: who sends what to whom."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.flows import begin_flow, drop_flow
from workbench.serving.kernels.host_cache import caches, models_of
from workbench.serving.kernels.layout import PREFILLS
from workbench.serving.kernels.roles_layout import (
    CAPACITY,
    CHAIN,
    ENDED,
    FIRST_FLOW,
    FIRST_OP,
    FLOWING,
    FLOWS_USED,
    GROUP,
    HOP_AT,
    HOPS,
    HOPS_USED,
    INSTANCES,
    KIND,
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
from workbench.serving.kernels.rows import has_weights, is_loading, log_load
from workbench.serving.kernels.scaled_layout import (
    AT_HOST,
    CHOSEN,
    CONTROL_S,
    DECODE_FIRST,
    FORMS_S,
    FROM_HOSTS,
    HOST_AT,
    HOST_OF,
    HOSTS_SEND,
    LAG_S,
    LOADED_AT,
    MODEL_OF,
    MOST_CHAINS,
    NEAR_S,
    OPERATION,
    OPERATION_AT,
    OPERATIONS,
    PIPELINE,
    POSITION,
    READY_S,
    REROUTES,
    ROLE_OF,
    TARGETS,
    THERE_S,
    TIER,
    USES,
    WEIGHT_BYTES,
)
from workbench.serving.policy.scalers import CHAIN_TIER, MULTICAST_TIER, NEAR_TIER


@inner_kernel
def begin_sending(scaled, router, links, m, begin, count, now_s):
    """Send the targets from `begin` on their weights: from rows on their own hosts, else by chains or as a ring.

    The first of those that nobody can send them; targets change their order.
    """
    ring = scaled.reals[m, NEAR_S] < np.inf
    if ring:
        begin = _begin_near(scaled, links, m, begin, count, now_s)
    senders = _choose_senders(scaled, router, links, m, now_s) if begin < count else 0
    if senders == 0:
        return begin
    alone = scaled.models[m, MOST_CHAINS] == 0
    if ring and not alone:
        _begin_ring(scaled, links, m, begin, count, senders, now_s)
        return count
    chains = count - begin if alone else min(scaled.models[m, MOST_CHAINS], senders, count - begin)
    for c in range(chains):
        begin_chain(scaled, links, m, scaled.lists[CHOSEN, c % senders], begin + c, count, np.int64(chains), now_s)
    return count


@inner_kernel
def begin_chain(scaled, links, m, sender, begin, count, step, now_s):
    """Send every so-manieth target from `begin` on its weights in a chain behind one sender, a row or N + a host."""
    o = _open(scaled, links, m, CHAIN)
    _add_sender(scaled, links, o, sender)
    for i in range(begin, count, step):
        _add_load(scaled, links, o, scaled.lists[TARGETS, i], np.int64(CHAIN_TIER), (i - begin) // step, now_s)
    scaled.counts[OPERATIONS] += 1
    begin_flow_of(links, o, sender, scaled.reals[m, WEIGHT_BYTES], now_s)
    for i in range(begin, count, step):
        add_hop(links, scaled.lists[TARGETS, i])


@inner_kernel
def begin_flow_of(links, o, sender, size, now_s):
    """A flow of an operation begins, from a row or from N + a host; the rows that it passes are to be added."""
    entry = begin_flow(links, np.int64(-1), sender, np.int64(-1), size, now_s)
    flow = links.flows[entry]
    flow[OP], flow[HOP_AT] = o, links.counts[HOPS_USED]
    links.ops[o, FLOWING] += 1


@inner_kernel
def add_hop(links, j):
    """The flow begun last passes one more row."""
    _note(links, j, np.int64(0))
    links.flows[links.active[links.counts[UNDER_WAY] - 1], HOPS] += 1


@inner_kernel
def _note(links, a, b):
    entry = links.counts[HOPS_USED]
    links.hops[entry, 0], links.hops[entry, 1] = a, b
    links.counts[HOPS_USED] = entry + 1


@inner_kernel
def _open(scaled, links, m, kind):
    """The row of a new operation; its senders come next, then its loads."""
    o = links.counts[OPS_USED]
    links.counts[OPS_USED] = o + 1
    op = links.ops[o]
    op[NUMBER], op[GROUP], op[KIND], op[SENDERS_AT] = scaled.counts[OPERATIONS], m, kind, links.counts[HOPS_USED]
    op[SENDERS] = op[MEMBERS] = op[LOADING] = op[FLOWING] = 0
    op[FIRST_FLOW] = links.counts[FLOWS_USED]
    return o


@inner_kernel
def _add_sender(scaled, links, o, sender):
    """One more row, or N + a host, sends; rows are in use meanwhile."""
    read = 1 if sender < links.counts[INSTANCES] else 0
    _note(links, sender, read)
    links.ops[o, SENDERS] += 1
    if read == 1:
        scaled.rows[sender, USES] += 1


@inner_kernel
def _add_load(scaled, links, o, j, tier, position, now_s):
    """One more row of the operation that is next loads."""
    row, times, op = scaled.rows[j], scaled.times[j], links.ops[o]
    row[TIER], row[OPERATION_AT], row[POSITION], row[FROM_HOSTS], row[PIPELINE] = tier, o, position, 0, -1
    times[READY_S] = times[THERE_S] = times[FORMS_S] = np.inf
    log_load(scaled, j, op[SENDERS], now_s)
    _note(links, j, position)
    op[MEMBERS] += 1
    op[LOADING] += 1


@inner_kernel
def _begin_near(scaled, links, m, begin, count, now_s):
    """Rows on hosts where others of the model have their weights load from these; the first target that is left."""
    targets, begun = scaled.lists[TARGETS], begin
    for h in range(scaled.hosts.shape[0]):
        o = np.int64(-1)
        for i in range(begun, count):
            j = targets[i]
            if scaled.rows[j, HOST_OF] != h or (o < 0 and not _has_holder(scaled, m, h)):
                continue
            if o < 0:
                o = _open_near(scaled, links, m, h)
            for k in range(i, begun, -1):
                targets[k] = targets[k - 1]
            targets[begun] = j
            begun += 1
            _add_load(scaled, links, o, j, np.int64(NEAR_TIER), np.int64(0), now_s)
            scaled.times[j, READY_S] = (now_s + scaled.reals[m, CONTROL_S]) + scaled.reals[m, NEAR_S]
        if o >= 0:
            scaled.counts[OPERATIONS] += 1
    return begun


@inner_kernel
def _open_near(scaled, links, m, h):
    """A new operation whose senders are the rows of a host that have the weights."""
    o = _open(scaled, links, m, NEAR)
    for k in range(scaled.lists[HOST_AT, h], scaled.lists[HOST_AT, h + 1]):
        j = scaled.lists[AT_HOST, k]
        if _holds(scaled, j, m):
            _add_sender(scaled, links, o, j)
    return o


@inner_kernel
def _holds(scaled, j, m):
    return scaled.rows[j, MODEL_OF] == m % models_of(scaled) and has_weights(scaled.rows[j])


@inner_kernel
def _has_holder(scaled, m, h):
    for k in range(scaled.lists[HOST_AT, h], scaled.lists[HOST_AT, h + 1]):
        if _holds(scaled, scaled.lists[AT_HOST, k], m):
            return True
    return False


@inner_kernel
def _choose_senders(scaled, router, links, m, now_s):
    """List who may send to a group, best first: those that the fewest operations read, else hosts. How many."""
    chosen, n, spare, count = scaled.lists[CHOSEN], scaled.rows.shape[0], False, np.int64(0)
    if scaled.models[m, DECODE_FIRST] == 1:
        for j in range(n):
            spare |= _holds(scaled, j, m) and scaled.rows[j, ROLE_OF] != PREFILLS
    for j in range(n):
        if not _holds(scaled, j, m) or (spare and scaled.rows[j, ROLE_OF] == PREFILLS):
            continue
        key, k = _uses_of(scaled, router, j) * n + j, count
        while k > 0 and chosen[k - 1] > key:
            chosen[k] = chosen[k - 1]
            k -= 1
        chosen[k] = key
        count += 1
    for k in range(count):
        chosen[k] %= n
    if count == 0 and scaled.models[m, HOSTS_SEND] == 1:
        for h in range(scaled.hosts.shape[0]):
            if caches(scaled, h, m % models_of(scaled), now_s):
                chosen[count] = n + h
                count += 1
    return _leave_out_broken(links, chosen, count) if scaled.models[m, REROUTES] == 1 else count


@inner_kernel
def _leave_out_broken(links, chosen, count):
    """Keep those senders whose ways out have not failed, or all if there are none. How many."""
    kept = 0
    for k in range(count):
        sender = chosen[k]
        port = sender if sender < links.counts[INSTANCES] else sender + links.counts[INSTANCES]
        if links.ports[port, CAPACITY] > 0:
            chosen[kept] = sender
            kept += 1
    return kept if kept > 0 else count


@inner_kernel
def _uses_of(scaled, router, j):
    """How many operations read a row."""
    rows, count = scaled.rows, scaled.rows[j, USES]
    for i in range(rows.shape[0]):
        reads = is_loading(rows[i]) and rows[i, TIER] == MULTICAST_TIER and rows[i, MODEL_OF] == rows[j, MODEL_OF]
        if reads and rows[i, OPERATION] >= rows[j, LOADED_AT]:
            first = True
            for k in range(i):
                first &= not (is_loading(rows[k]) and rows[k, OPERATION] == rows[i, OPERATION])
            count += 1 if first else 0
    return count


@inner_kernel
def _begin_ring(scaled, links, m, begin, count, senders, now_s):
    """Send targets their weights from host to host; several flows, of a sender each, pass the rows of each host."""
    targets, sorted_up, nodes, most = scaled.lists[TARGETS], begin, 0, 1
    while sorted_up < count:  # put those of the next node behind those of the ones before
        h, first = scaled.rows[targets[sorted_up], HOST_OF], sorted_up
        for i in range(first, count):
            j = targets[i]
            if scaled.rows[j, HOST_OF] == h:
                for k in range(i, sorted_up, -1):
                    targets[k] = targets[k - 1]
                targets[sorted_up] = j
                sorted_up += 1
        for i in range(first, sorted_up):
            scaled.rows[targets[i], POSITION] = nodes
        nodes += 1
        most = max(most, sorted_up - first)
    flows = min(scaled.models[m, MOST_CHAINS], senders, most)
    o = _open(scaled, links, m, RING)
    for c in range(flows):
        _add_sender(scaled, links, o, scaled.lists[CHOSEN, c])
    for i in range(begin, count):
        _add_load(scaled, links, o, targets[i], np.int64(CHAIN_TIER), scaled.rows[targets[i], POSITION], now_s)
    scaled.counts[OPERATIONS] += 1
    for c in range(flows):
        begin_flow_of(links, o, scaled.lists[CHOSEN, c], scaled.reals[m, WEIGHT_BYTES] / flows, now_s)
        first = begin
        while first < count:
            behind = first + 1
            while behind < count and scaled.rows[targets[behind], POSITION] == scaled.rows[targets[first], POSITION]:
                behind += 1
            add_hop(links, targets[first + c % (behind - first)])
            first = behind


@inner_kernel
def sent(scaled, links, o, now_s):
    """A flow of an operation has ended: with the last one, its rows have the weights one after the other."""
    op = links.ops[o]
    op[FLOWING] -= 1
    if op[FLOWING] > 0:
        return
    _release(scaled, links, op)
    for j in range(scaled.rows.shape[0]):
        if loads_in(scaled, links, j, o):
            times, reals = scaled.times[j], scaled.reals[op[GROUP]]
            times[THERE_S] = now_s + scaled.rows[j, POSITION] * reals[LAG_S]
            times[READY_S] = times[THERE_S] + reals[CONTROL_S]


@inner_kernel
def loads_in(scaled, links, j, o):
    """Whether the weights of a row are on their way by an operation whose senders are named."""
    return is_loading(scaled.rows[j]) and scaled.rows[j, OPERATION] == links.ops[o, NUMBER]


@inner_kernel
def _release(scaled, links, op):
    """Senders are read no more."""
    for e in range(op[SENDERS_AT], op[SENDERS_AT] + op[SENDERS]):
        if links.hops[e, 1] == 1:
            scaled.rows[links.hops[e, 0], USES] -= 1
            links.hops[e, 1] = 0


@inner_kernel
def leave_operation(scaled, links, j, now_s):
    """A load is complete or lost: the last one of an operation ends it."""
    if links is None:
        return
    row = scaled.rows[j]
    if row[TIER] == CHAIN_TIER or row[TIER] == NEAR_TIER:
        links.ops[row[OPERATION_AT], LOADING] -= 1
        if links.ops[row[OPERATION_AT], LOADING] == 0:
            end_operation(scaled, links, row[OPERATION_AT], now_s)


@inner_kernel
def end_operation(scaled, links, o, now_s):
    """Nothing is sent any more, and senders are read no more."""
    op, k = links.ops[o], 0
    op[KIND] = ENDED
    while k < links.counts[UNDER_WAY]:
        if links.flows[links.active[k], OP] == o:
            drop_flow(links, links.active[k], now_s)
        else:
            k += 1
    _release(scaled, links, op)
    while links.counts[FIRST_OP] < links.counts[OPS_USED] and links.ops[links.counts[FIRST_OP], KIND] == ENDED:
        links.counts[FIRST_OP] += 1
