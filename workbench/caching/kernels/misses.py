"""Which instances of a scale-up find no host copy that is still kept."""

import numpy as np

from workbench.jit import kernel


@kernel
def scale_up_misses(need, keep_s, started, missed):
    """Fill how many instances start in each second, and how many of them find no copy.

    Parameters:
        need: int64[n], instances needed in each second.
        keep_s: seconds for which a host keeps what it last used.
        started, missed: int64[n].

    Instances are numbered and the lowest run, so a copy is kept for as many as were needed at once in the last
    `keep_s` seconds: a step up misses by what exceeds their maximum. The first second starts nothing.
    """
    order = np.empty(need.size, np.int64)  # seconds of the window, their needs falling
    front, back = 0, 0
    for now in range(need.size):
        started[now], missed[now] = 0, 0
        if now > 0 and need[now] > need[now - 1]:
            while order[front] < now - keep_s:
                front += 1
            started[now] = need[now] - need[now - 1]
            missed[now] = max(0, need[now] - need[order[front]])
        while back > front and need[order[back - 1]] <= need[now]:
            back -= 1
        order[back] = now
        back += 1


def scale_up_misses_slow(need, keep_s):
    """The same by looking back over every second: rows (started, missed)."""
    rows = [(0, 0)]
    for now in range(1, len(need)):
        up = max(0, need[now] - need[now - 1])
        rows.append((up, max(0, need[now] - max(need[max(0, now - keep_s) : now])) if up else 0))
    return rows
