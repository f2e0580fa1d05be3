"""A tick of the autoscaler."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.blocks import blocks_to_admit
from workbench.serving.kernels.layout import (
    FREE,
    MODEL,
    OUTSTANDING,
    PREFILLS,
    QUEUE_HEAD,
    ROLE,
    RUNNING,
    WAITING,
)
from workbench.serving.kernels.resizing import grow, shrink
from workbench.serving.kernels.rows import is_loading
from workbench.serving.kernels.sampling import count_changing, count_rows, sample, wanted
from workbench.serving.kernels.scaled_layout import (
    KEEP_S,
    PIPED,
    QUIET,
    QUIET_ENOUGH,
    ROW_STATE,
    STARTING,
    STATES_USED,
    TICK,
    TICKING,
    UP_STATE,
    WARM,
)


@inner_kernel
def tick(state, router, scaled, chooser, come, nothing_comes, now_s):
    """Look at every model and decide, unless all requests are done. False if the policy chose what was not offered."""
    counts, models, n = scaled.counts, scaled.models.shape[0], scaled.rows.shape[0]
    inside = state.moments.shape[0] - come
    for m in range(models):
        inside += router.lines[m, WAITING]
    held = 0
    for j in range(n):
        held += state.instances[j, OUTSTANDING]
    if inside + held == 0:
        counts[TICKING] = 0
        return True
    for m in range(models):
        sample(state, scaled, router, m)
    changes = counts[STATES_USED]
    for m in range(models):
        want = wanted(scaled, router, m, now_s)
        n = count_rows(scaled.rows, router, m, UP_STATE) + count_rows(scaled.rows, router, m, STARTING)
        n += count_rows(scaled.rows, router, m, PIPED) + count_changing(scaled, router, scaled.links, m)
        if want > n and not grow(state, scaled, router, chooser, m, want - n, now_s):
            return False
        if want < n:
            shrink(state, scaled, router, m, n - want, now_s)
    counts[TICK] += 1
    calm = nothing_comes and counts[STATES_USED] == changes and nothing_pending(state, scaled)
    counts[QUIET] = counts[QUIET] + 1 if calm else 0
    if counts[QUIET] == counts[QUIET_ENOUGH]:
        counts[TICKING] = 0
    return True


@inner_kernel
def nothing_pending(state, scaled):
    """Whether no row is starting or has a step to do, and no warm one will expire."""
    for j in range(scaled.rows.shape[0]):
        row = scaled.rows[j]
        if is_loading(row) or _works(state, state.instances[j]):
            return False
        if row[ROW_STATE] == WARM and scaled.reals[state.instances[j, MODEL], KEEP_S] < np.inf:
            return False
    return True


@inner_kernel
def _works(state, one):
    """Whether an instance has requests, and KV that is to be sent does not take the blocks that the first one needs."""
    if one[OUTSTANDING] == 0 or one[ROLE] != PREFILLS or one[RUNNING] > 0:
        return one[OUTSTANDING] > 0
    return blocks_to_admit(state.requests, one, one[QUEUE_HEAD]) <= one[FREE]
