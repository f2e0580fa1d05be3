"""Loads of weights begin: by tiers, together from the memories of hosts, from other rows."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.host_cache import caches, models_of
from workbench.serving.kernels.layout import BEGIN, BEHIND
from workbench.serving.kernels.rows import has_weights, log_load
from workbench.serving.kernels.scaled_layout import (
    CONTROL_S,
    COPIED_S,
    DETECT_S,
    DRAM_S,
    FIXED_S,
    FORMS_S,
    FROM_HOSTS,
    HITS,
    HOST_OF,
    HOSTS_SEND,
    LOADED_AT,
    MEMORY_FIRST,
    MODEL_OF,
    OPERATIONS,
    PIPED_S,
    PIPED_WITH,
    PIPELINE,
    READY_S,
    SEEN_S,
    SOURCE,
    STALE_S,
    TARGETS,
    TIER,
    WEIGHT_BYTES,
)
from workbench.serving.kernels.sending import begin_sending
from workbench.serving.kernels.ssd import begin_read
from workbench.serving.policy.scalers import (
    ALL_CACHED,
    CHAINS,
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
            if has_weights(row) and row[LOADED_AT] <= operation:
                count += 1
    return count


@inner_kernel
def hits_first(scaled, count):
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
    if scaled.models[m, SOURCE] == CHAINS:
        begin_chains(scaled, router, scaled.links, m, count, now_s)
        return
    if scaled.models[m, SOURCE] != MULTICAST:
        _begin_groups(scaled, m, np.int64(0), count, count, np.int64(BY_TIERS), np.bool_(False), now_s)
        return
    most, warm = scaled.multicast.shape[2], 0
    if scaled.models[m, MEMORY_FIRST] == 1:
        warm = hits_first(scaled, count)
        _begin_groups(scaled, m, np.int64(0), warm, most, np.int64(TOGETHER), np.bool_(False), now_s)
    senders = sources_of(scaled, router, m, scaled.counts[OPERATIONS])
    from_hosts = senders == 0 and scaled.models[m, HOSTS_SEND] == 1
    if from_hosts:
        senders = _hosts_with(scaled, m, now_s)
    if senders > 0:
        _begin_groups(scaled, m, warm, count, most, np.int64(senders), from_hosts, now_s)
    else:
        _begin_groups(scaled, m, warm, count, count, np.int64(BY_TIERS), np.bool_(False), now_s)


@inner_kernel
def begin_chains(scaled, router, links, m, count, now_s):
    """The same where weights go over links that KV uses too."""
    if links is None:
        return
    warm = hits_first(scaled, count) if scaled.models[m, MEMORY_FIRST] == 1 else np.int64(0)
    if warm > 0:
        _begin_groups(scaled, m, np.int64(0), warm, warm, np.int64(BY_TIERS), np.bool_(False), now_s)
    left = begin_sending(scaled, router, links, m, warm, count, now_s)
    if left < count:
        _begin_groups(scaled, m, left, count, count - left, np.int64(BY_TIERS), np.bool_(False), now_s)


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
        if now_s - scaled.gone_s[h, row[MODEL_OF]] < scaled.clock[STALE_S]:
            times[SEEN_S] = now_s + scaled.clock[DETECT_S]
        else:
            begin_read(scaled, h, j, reals[WEIGHT_BYTES], now_s)
    log_load(scaled, j, max(senders, 0), now_s)
