"""Weights in the memory of hosts: which are there, and which have to go."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.scaled_layout import (
    AT_HOST,
    CACHE_BYTES,
    DEAD,
    EMPTY,
    HOST_AT,
    LAST_S,
    MODEL_OF,
    OLD,
    ROW_STATE,
    TTL_S,
    USED_S,
    WEIGHT_BYTES,
)


@inner_kernel
def models_of(scaled):
    """How many models there are: a group so many later is another role of the same one."""
    return scaled.hosts.shape[1] - USED_S


@inner_kernel
def has_row(scaled, h, m):
    """Whether a host has a row of a model that is neither empty nor dead, nor of an older version."""
    for k in range(scaled.lists[HOST_AT, h], scaled.lists[HOST_AT, h + 1]):
        j = scaled.lists[AT_HOST, k]
        row_state = scaled.rows[j, ROW_STATE]
        new = scaled.rows[j, MODEL_OF] == m and scaled.rows[j, OLD] == 0
        if new and row_state != EMPTY and row_state != DEAD:
            return True
    return False


@inner_kernel
def caches(scaled, h, m, now_s):
    """Whether a host's memory holds the weights of a model; what was unused for too long is forgotten."""
    if not scaled.hosts[h, USED_S + m] > -np.inf:
        return False
    if now_s - scaled.hosts[h, USED_S + m] >= scaled.reals[m, TTL_S] and not has_row(scaled, h, m):
        scaled.hosts[h, USED_S + m] = np.nan
        return False
    return True


@inner_kernel
def touch(scaled, h, m, now_s):
    """The weights have been used now, if they are there and may leave."""
    if abs(scaled.hosts[h, USED_S + m]) < np.inf:
        scaled.hosts[h, USED_S + m] = now_s


@inner_kernel
def forget(scaled, h, m, now_s):
    """What a host's memory has of a model is no use any more; if it never leaves, it stays again when it comes anew."""
    if caches(scaled, h, m, now_s):
        scaled.hosts[h, USED_S + m] = -np.inf if scaled.hosts[h, USED_S + m] == np.inf else np.nan
        scaled.gone_s[h, m] = now_s


@inner_kernel
def enter(scaled, h, m, now_s):
    """Weights have come to the host's memory, if they never leave it or fit there at all."""
    used_s = scaled.hosts[h, USED_S + m]
    if abs(used_s) != np.inf and scaled.reals[m, WEIGHT_BYTES] > scaled.hosts[h, CACHE_BYTES]:
        return
    scaled.hosts[h, USED_S + m] = np.inf if abs(used_s) == np.inf else now_s
    scaled.gone_s[h, m] = -np.inf
    make_room(scaled, h, now_s)


@inner_kernel
def make_room_first(scaled):
    """Before anything happens, what does not fit in the memories of hosts is not there."""
    if scaled.clock[LAST_S] < 0:
        for h in range(scaled.hosts.shape[0]):
            make_room(scaled, h, 0.0)
        scaled.clock[LAST_S] = 0.0


@inner_kernel
def make_room(scaled, h, now_s):
    """While there is more than fits, the weights used longest ago go, of models without a row on the host."""
    while True:
        total, oldest = 0.0, -1
        for m in range(models_of(scaled)):
            if caches(scaled, h, m, now_s):
                total += scaled.reals[m, WEIGHT_BYTES]
                older = oldest < 0 or scaled.hosts[h, USED_S + m] < scaled.hosts[h, USED_S + oldest]
                if older and scaled.hosts[h, USED_S + m] < np.inf and not has_row(scaled, h, m):
                    oldest = m
        if total <= scaled.hosts[h, CACHE_BYTES] or oldest < 0:
            return
        scaled.hosts[h, USED_S + oldest] = np.nan
        scaled.gone_s[h, oldest] = now_s
