"""A token comes, a request ends."""

from workbench.jit import inner_kernel
from workbench.pooling.kernels.layout import (
    ARRIVAL_S,
    AT,
    BROKEN,
    DONE,
    FINISH_S,
    FIRST_S,
    INSIDE_NOW,
    MADE,
    MISSES,
    MODEL,
    QUIET,
    RESERVED,
    STATUS,
)


@inner_kernel
def emit(s, r, now):
    """Write a token down, and whether it breaks the promise of its request for the first time."""
    row, moments, rules = s.requests[r], s.moments[r], s.rules
    due_s = moments[ARRIVAL_S] + rules.promise_ttft_s + row[MADE] * rules.promise_tbt_s
    if now > due_s and row[BROKEN] == 0:
        row[BROKEN] = 1
        s.shared[MISSES] += 1
    if s.shared[QUIET] == 0:
        s.token_s[row[AT] + row[MADE]] = now
    if row[MADE] == 0:
        moments[FIRST_S] = now
    row[MADE] += 1


@inner_kernel
def finish(s, r, now):
    """A request leaves the pool."""
    model = s.requests[r, MODEL]
    s.requests[r, STATUS] = DONE
    s.moments[r, FINISH_S] = now
    s.shared[INSIDE_NOW] -= 1
    s.owners[s.models.owner[model]] -= 1
    s.reserved[s.models.home[model]] -= s.requests[r, RESERVED] * s.models.block_bytes[model]
