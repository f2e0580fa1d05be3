"""Reads from a host's SSDs, which share their rate equally among them, and give each no more than its own."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.scaled_layout import (
    AT_HOST,
    HOST_AT,
    LEFT_BYTES,
    ON_SSD,
    SSD_CHANGED_S,
    SSD_EACH,
    SSD_END_S,
    SSD_RATE,
)


@inner_kernel
def _reads(scaled, h):
    count = 0
    for k in range(scaled.lists[HOST_AT, h], scaled.lists[HOST_AT, h + 1]):
        count += scaled.rows[scaled.lists[AT_HOST, k], ON_SSD]
    return count


@inner_kernel
def _least_left(scaled, h):
    """The row with the fewest bytes to read; -1 if none reads."""
    least = np.int64(-1)
    for k in range(scaled.lists[HOST_AT, h], scaled.lists[HOST_AT, h + 1]):
        j = scaled.lists[AT_HOST, k]
        if scaled.rows[j, ON_SSD] == 1 and (least < 0 or scaled.times[j, LEFT_BYTES] < scaled.times[least, LEFT_BYTES]):
            least = j
    return least


@inner_kernel
def _count_down(scaled, h, now_s):
    """What has been read since the last change is no longer left."""
    host, count = scaled.hosts[h], _reads(scaled, h)
    if count > 0:
        read = min(host[SSD_RATE] / count, host[SSD_EACH]) * (now_s - host[SSD_CHANGED_S])
        for k in range(scaled.lists[HOST_AT, h], scaled.lists[HOST_AT, h + 1]):
            j = scaled.lists[AT_HOST, k]
            if scaled.rows[j, ON_SSD] == 1:
                scaled.times[j, LEFT_BYTES] = max(0.0, scaled.times[j, LEFT_BYTES] - read)
    host[SSD_CHANGED_S] = now_s


@inner_kernel
def _foresee(scaled, h):
    """Work out when the next read ends."""
    host, count, j = scaled.hosts[h], _reads(scaled, h), _least_left(scaled, h)
    host[SSD_END_S] = np.inf
    if count > 0:
        rate = min(host[SSD_RATE] / count, host[SSD_EACH])
        host[SSD_END_S] = host[SSD_CHANGED_S] + scaled.times[j, LEFT_BYTES] / rate


@inner_kernel
def begin_read(scaled, h, j, size, now_s):
    """A row begins to read its weights; no read of the host ends at this very instant any more."""
    _count_down(scaled, h, now_s)
    scaled.rows[j, ON_SSD] = 1
    scaled.times[j, LEFT_BYTES] = size
    _foresee(scaled, h)
    scaled.hosts[h, SSD_END_S] = max(scaled.hosts[h, SSD_END_S], np.nextafter(now_s, np.inf))


@inner_kernel
def drop_read(scaled, h, j, now_s):
    """A row stops reading, done or not."""
    _count_down(scaled, h, now_s)
    scaled.rows[j, ON_SSD] = 0
    _foresee(scaled, h)


@inner_kernel
def end_read(scaled, h, now_s):
    """End the read that is due now; whose it was."""
    j = _least_left(scaled, h)
    drop_read(scaled, h, j, now_s)
    return j
