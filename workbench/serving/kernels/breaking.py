"""Places that fail and come back."""

from workbench.jit import inner_kernel
from workbench.serving.kernels.failing import fail
from workbench.serving.kernels.host_cache import make_room
from workbench.serving.kernels.layout import MODEL
from workbench.serving.kernels.loading import begin_again
from workbench.serving.kernels.routing import hand_out
from workbench.serving.kernels.rows import change
from workbench.serving.kernels.scaled_layout import (
    AT_PLACE,
    DEAD,
    DRAINING,
    EMPTY,
    HOST_OF,
    OCCUPANT,
    ON_SSD,
    PLACE_AT,
    ROW_STATE,
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
    for k in range(scaled.lists[PLACE_AT, p], scaled.lists[PLACE_AT, p + 1]):
        change(state, scaled, scaled.lists[AT_PLACE, k], DEAD, now_s)
    scaled.lists[OCCUPANT, p] = -1
    h = scaled.rows[scaled.lists[AT_PLACE, scaled.lists[PLACE_AT, p]], HOST_OF]
    if used >= 0:
        m = state.instances[used, MODEL]
        if before in (UP_STATE, DRAINING):
            fail(state, router, used, m)
            if not hand_out(state, router, chooser, m, now_s):
                return False
        if scaled.rows[used, ON_SSD] == 1:
            drop_read(scaled, h, used, now_s)
    make_room(state, scaled, h, now_s)
    if used >= 0:
        begin_again(state, scaled, router, state.instances[used, MODEL], now_s)
    return True
