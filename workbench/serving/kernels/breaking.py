"""Places that fail and come back."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.failing import fail
from workbench.serving.kernels.host_cache import make_room
from workbench.serving.kernels.layout import MODEL
from workbench.serving.kernels.loading import begin_again
from workbench.serving.kernels.piping import break_lanes, exchange_forms
from workbench.serving.kernels.routing import hand_out
from workbench.serving.kernels.rows import change
from workbench.serving.kernels.scaled_layout import (
    AT_PLACE,
    DEAD,
    DRAINING,
    EMPTY,
    FORMS_S,
    HOST_OF,
    OCCUPANT,
    ON_SSD,
    OPERATION,
    PIPED,
    PIPELINE,
    PLACE_AT,
    ROW_STATE,
    STARTING,
    UP_STATE,
)
from workbench.serving.kernels.ssd import drop_read


@inner_kernel
def recover(state, scaled, p, now_s):
    """A place is back, without weights."""
    for k in range(scaled.lists[PLACE_AT, p], scaled.lists[PLACE_AT, p + 1]):
        change(state, scaled, scaled.lists[AT_PLACE, k], EMPTY, now_s)


@inner_kernel
def break_down(state, router, scaled, chooser, p, now_s):
    """A place fails with what is in it. False if the policy chose what was not offered."""
    used = scaled.lists[OCCUPANT, p]
    before = scaled.rows[used, ROW_STATE] if used >= 0 else EMPTY
    member = before == PIPED or (before == STARTING and scaled.times[used, FORMS_S] < np.inf)
    for k in range(scaled.lists[PLACE_AT, p], scaled.lists[PLACE_AT, p + 1]):
        change(state, scaled, scaled.lists[AT_PLACE, k], DEAD, now_s)
    scaled.lists[OCCUPANT, p] = -1
    h = scaled.rows[scaled.lists[AT_PLACE, scaled.lists[PLACE_AT, p]], HOST_OF]
    if used >= 0:
        m = state.instances[used, MODEL]
        if before in (UP_STATE, DRAINING, PIPED):
            fail(state, router, used, m)
            if not hand_out(state, router, chooser, m, now_s):
                return False
        if before == PIPED:
            exchange_forms(state.reals[used], scaled.times[used])
        row = scaled.rows[used]
        if member and not break_lanes(state, scaled, router, chooser, m, row[OPERATION], row[PIPELINE], now_s):
            return False
        if scaled.rows[used, ON_SSD] == 1:
            drop_read(scaled, h, used, now_s)
    make_room(scaled, h, now_s)
    return used < 0 or begin_again(state, scaled, router, chooser, state.instances[used, MODEL], now_s)
