"""Loads of weights: begun, completed, begun again when all sources have failed."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.handing_over import hand_out_and_on
from workbench.serving.kernels.host_cache import caches, enter, models_of, touch
from workbench.serving.kernels.layout import BEGIN, BEHIND, MODEL
from workbench.serving.kernels.piping import break_lanes, switch
from workbench.serving.kernels.rows import change, is_loading
from workbench.serving.kernels.scaled_layout import (
    CONTROL_S,
    COPIED_S,
    DRAINING,
    DRAM_S,
    FIXED_S,
    FORMS_S,
    FROM_HOSTS,
    HITS,
    HOST_OF,
    HOSTS_SEND,
    LOAD,
    LOADED_AT,
    LOADS,
    LOADS_USED,
    MEMORY_FIRST,
    MODEL_OF,
    OPERATION,
    OPERATIONS,
    PIPED,
    PIPED_S,
    PIPED_WITH,
    PIPELINE,
    READY_S,
    ROW_STATE,
    SOURCE,
    SSD_END_S,
    STARTING,
    TARGETS,
    TIER,
    UP_STATE,
    WARM,
    WEIGHT_BYTES,
)
from workbench.serving.kernels.ssd import begin_read, end_read
from workbench.serving.policy.scalers import (
    ALL_CACHED,
    DRAM_TIER,
    FIXED,
    FIXED_TIER,
    IDEAL,
    IDEAL_TIER,
    MULTICAST,
    MULTICAST_TIER,
    SSD_TIER,
)

BY_TIERS, TOGETHER = -1, 0
"""In place of a number of senders: each row by itself from memory or SSD; rows together from the memories of hosts."""


@inner_kernel
def look_up(scaled, m, now_s):
    """Note which hosts cache the model of a group."""
    for h in range(scaled.hosts.shape[0]):
        scaled.lists[HITS, h] = 1 if caches(scaled, h, m % models_of(scaled), now_s) else 0


@inner_kernel
def sources_of(scaled, router, m, operation):
    """How many rows of a group's model have had its weights since before an operation."""
    count, models = 0, models_of(scaled)
    for line in range(m % models, router.lines.shape[0], models):
        for k in range(router.lines[line, BEGIN], router.lines[line, BEHIND]):
            row = scaled.rows[router.members[k]]
            loaded = row[ROW_STATE] == UP_STATE or row[ROW_STATE] == DRAINING or row[ROW_STATE] == WARM
            if loaded and row[LOADED_AT] <= operation:
                count += 1
    return count


@inner_kernel
def _hits_first(scaled, count):
    """Put the targets whose hosts cache the model before the others, each kind in its order; how many there are."""
    targets, hits = scaled.lists[TARGETS], 0
    for i in range(count):
        j = targets[i]
        if scaled.lists[HITS, scaled.rows[j, HOST_OF]] == 1:
            for k in range(i, hits, -1):
                targets[k] = targets[k - 1]
            targets[hits] = j
            hits += 1
    return hits


@inner_kernel
def _hosts_with(scaled, m, now_s):
    """How many hosts have the model of a group in memory."""
    count = 0
    for h in range(scaled.hosts.shape[0]):
        if caches(scaled, h, m % models_of(scaled), now_s):
            count += 1
    return count


@inner_kernel
def begin_loads(scaled, router, m, count, now_s):
    """Begin the loads of the first `count` targets, rows of a model that are starting; see `look_up` for what hits."""
    if scaled.models[m, SOURCE] != MULTICAST:
        _begin_groups(scaled, m, 0, count, count, np.int64(BY_TIERS), False, now_s)
        return
    most, warm = scaled.multicast.shape[2], 0
    if scaled.models[m, MEMORY_FIRST] == 1:
        warm = _hits_first(scaled, count)
        _begin_groups(scaled, m, 0, warm, most, np.int64(TOGETHER), False, now_s)
    senders = sources_of(scaled, router, m, scaled.counts[OPERATIONS])
    from_hosts = senders == 0 and scaled.models[m, HOSTS_SEND] == 1
    if from_hosts:
        senders = _hosts_with(scaled, m, now_s)
    if senders > 0:
        _begin_groups(scaled, m, warm, count, most, np.int64(senders), from_hosts, now_s)
    else:
        _begin_groups(scaled, m, warm, count, count, np.int64(BY_TIERS), False, now_s)


@inner_kernel
def _begin_groups(scaled, m, begin, end, group, senders, from_hosts, now_s):
    """Begin operations of so many targets each."""
    for first in range(begin, end, group):
        many = min(group, end - first)
        for i in range(many):
            j = scaled.lists[TARGETS, first + i]
            _begin(scaled, m, j, senders, many, i, now_s)
            scaled.rows[j, FROM_HOSTS] = 1 if from_hosts else 0
        scaled.counts[OPERATIONS] += 1


@inner_kernel
def _begin(scaled, m, j, senders, many, i, now_s):
    """Begin one load: by tiers, together with others from the memories of their hosts, or from so many senders."""
    row, times, reals, kind = scaled.rows[j], scaled.times[j], scaled.reals[m], scaled.models[m, SOURCE]
    h, begun_s = row[HOST_OF], now_s + reals[CONTROL_S]
    times[FORMS_S], row[PIPELINE] = np.inf, -1
    if kind == IDEAL:
        row[TIER], times[READY_S] = IDEAL_TIER, now_s
    elif kind == FIXED:
        row[TIER], times[READY_S] = FIXED_TIER, begun_s + reals[FIXED_S]
    elif senders >= 0:
        copy = scaled.multicast[m, min(senders, scaled.multicast.shape[1] - 1), many - 1, i]
        row[TIER], times[READY_S] = MULTICAST_TIER if senders > 0 else DRAM_TIER, begun_s + copy[COPIED_S]
        times[FORMS_S], row[PIPELINE] = begun_s + copy[PIPED_S], np.int64(copy[PIPED_WITH])
    elif kind == ALL_CACHED or scaled.lists[HITS, h] == 1:
        row[TIER], times[READY_S] = DRAM_TIER, begun_s + times[DRAM_S]
    else:
        row[TIER], times[READY_S] = SSD_TIER, np.inf
        begin_read(scaled, h, j, reals[WEIGHT_BYTES], now_s)
    log_load(scaled, j, max(senders, 0), now_s)


@inner_kernel
def log_load(scaled, j, senders, now_s):
    """A load of the operation that is next begins: write it down."""
    row, entry = scaled.rows[j], scaled.counts[LOADS_USED]
    row[LOAD], row[OPERATION] = entry, scaled.counts[OPERATIONS]
    log = scaled.logs[LOADS, entry]
    log[0], log[1], log[2], log[3] = now_s, np.nan, j, row[TIER]
    log[4], log[5], log[6], log[7], log[8] = senders, row[OPERATION], np.nan, 0.0, np.nan
    scaled.counts[LOADS_USED] = entry + 1


@inner_kernel
def come_up(state, scaled, router, chooser, j, now_s):
    """A row has its weights: it is up, and the router hands out. False if the policy chose what was not offered."""
    row = scaled.rows[j]
    if row[ROW_STATE] == PIPED:
        switch(state, scaled, j, now_s)
    change(state, scaled, j, UP_STATE, now_s)
    scaled.times[j, READY_S] = scaled.times[j, FORMS_S] = np.inf
    row[LOADED_AT] = scaled.counts[OPERATIONS]
    scaled.logs[LOADS, row[LOAD], 1] = now_s
    if row[TIER] == DRAM_TIER:
        touch(scaled, row[HOST_OF], row[MODEL_OF], now_s)
    return hand_out_and_on(state, router, scaled.links, chooser, state.instances[j, MODEL], now_s)


@inner_kernel
def complete(state, scaled, router, chooser, now_s):
    """End the reads that are due and let rows that are ready come up. False if the policy chose wrongly."""
    for h in range(scaled.hosts.shape[0]):
        while scaled.hosts[h, SSD_END_S] <= now_s:
            j = end_read(scaled, h, now_s)
            scaled.times[j, READY_S] = now_s + scaled.reals[state.instances[j, MODEL], CONTROL_S]
            enter(scaled, h, scaled.rows[j, MODEL_OF], now_s)
    for j in range(scaled.rows.shape[0]):
        ready = is_loading(scaled.rows[j]) and scaled.times[j, READY_S] <= now_s
        if ready and not come_up(state, scaled, router, chooser, j, now_s):
            return False
    return True


@inner_kernel
def begin_again(state, scaled, router, chooser, m, now_s):
    """Begin the loads of multicasts of a model anew that have lost all their sources, operation by operation.

    False if the policy chose what was not offered.
    """
    while True:
        orphan, group = _orphan_of(scaled, router, m)
        if orphan < 0:
            return True
        if not break_lanes(state, scaled, router, chooser, group, orphan, np.int64(-1), now_s):
            return False
        look_up(scaled, m, now_s)
        begin_loads(scaled, router, group, _targets_of(scaled, router, group, orphan), now_s)


@inner_kernel
def _orphan_of(scaled, router, m):
    """The first multicast of a model that has no source left, -1 for none; and the group that it is for."""
    orphan, group = np.int64(-1), m
    for line in range(m, router.lines.shape[0], models_of(scaled)):
        for k in range(router.lines[line, BEGIN], router.lines[line, BEHIND]):
            row = scaled.rows[router.members[k]]
            loading = is_loading(row) and row[TIER] == MULTICAST_TIER and row[FROM_HOSTS] == 0
            earlier = orphan < 0 or row[OPERATION] < orphan
            if loading and earlier and sources_of(scaled, router, m, row[OPERATION]) == 0:
                orphan, group = row[OPERATION], line
    return orphan, group


@inner_kernel
def _targets_of(scaled, router, m, operation):
    """Fill the targets with the rows that an operation still has to load, in its order; how many there are."""
    count = 0
    for k in range(router.lines[m, BEGIN], router.lines[m, BEHIND]):
        j = router.members[k]
        row = scaled.rows[j]
        if row[ROW_STATE] == STARTING and row[TIER] == MULTICAST_TIER and row[OPERATION] == operation:
            place = count
            while place > 0 and scaled.rows[scaled.lists[TARGETS, place - 1], LOAD] > row[LOAD]:
                scaled.lists[TARGETS, place] = scaled.lists[TARGETS, place - 1]
                place -= 1
            scaled.lists[TARGETS, place] = j
            count += 1
    return count
