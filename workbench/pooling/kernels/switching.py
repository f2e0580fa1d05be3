"""A switch of models on an instance, and the prefetch that it starts."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.pooling.kernels.caches import rate_from_host
from workbench.pooling.kernels.flows import start_flow, stop_flow
from workbench.pooling.kernels.layout import (
    ACT_S,
    BATCH_COUNT,
    BATCH_MODEL,
    BATCH_NEXT,
    END_S,
    FETCH,
    FETCH_DONE,
    FETCHED,
    FETCHING,
    FIRST_GROUP,
    GROUP_MODEL,
    GROUP_NEXT,
    GROUP_WAITING,
    IDLE,
    IN_ROUND,
    IS_DECODE,
    LOAD,
    LOADING,
    NODE,
    QUIET,
    READY_S,
    RESIDENT,
    SINCE_SWITCH_S,
    STAGE,
    SWITCH_FROM_S,
    SWITCH_KIND,
    SWITCHES_USED,
    SWITCHING_S,
    TARGET,
    TIMED,
    TURN,
)
from workbench.pooling.policy.names import IDEAL, PREFETCH

COLD, PARTLY, HIDDEN = 0, 1, 2


@inner_kernel
def begin_switch(s, i, model, now):
    """Make a model the resident one: from the prefetched weights, or by loading them."""
    one, real, rules = s.instances[i], s.reals[i], s.rules
    one[RESIDENT], one[TARGET] = -1, model
    real[SWITCH_FROM_S] = now
    if rules.prefetch == IDEAL:
        whole_s = s.models.weight_bytes[model] / s.models.load_bytes_per_s[model]
        left_s = max(rules.least_switch_s, whole_s - real[SINCE_SWITCH_S])
        one[SWITCH_KIND] = COLD if left_s == whole_s else PARTLY if left_s > rules.least_switch_s else HIDDEN
        one[STAGE], s.times[i, END_S] = TIMED, now + left_s
        return
    if one[FETCHED] == model:
        if one[FETCH_DONE] == 1:
            one[STAGE], one[SWITCH_KIND], s.times[i, END_S] = TIMED, HIDDEN, now + rules.least_switch_s
        else:
            one[STAGE], one[SWITCH_KIND] = FETCHING, PARTLY
        return
    if s.times[i, FETCH] < np.inf:
        stop_flow(s, i, FETCH, now)
    one[FETCHED] = -1
    one[STAGE], one[SWITCH_KIND] = LOADING, COLD
    rate = rate_from_host(s, one[NODE], model, now)
    start_flow(s, i, LOAD, s.models.weight_bytes[model], rate, now)


@inner_kernel
def fetched(s, i, now):
    """The prefetched weights are there."""
    one = s.instances[i]
    one[FETCH_DONE] = 1
    if one[STAGE] == FETCHING:
        one[STAGE], s.times[i, END_S] = TIMED, now + s.rules.least_switch_s


@inner_kernel
def end_switch(s, i, now):
    """The model is resident; the next other one that will be wanted is prefetched, where memory allows."""
    one, real = s.instances[i], s.reals[i]
    model = one[TARGET]
    one[RESIDENT], one[TARGET], one[FETCHED], one[STAGE] = model, -1, -1, IDLE
    real[SINCE_SWITCH_S], real[READY_S], s.times[i, ACT_S] = 0.0, now, now
    real[SWITCHING_S] += now - real[SWITCH_FROM_S]
    if s.shared[QUIET] == 0:
        k = s.shared[SWITCHES_USED]
        if k < s.switches.shape[0]:
            line = s.switches[k]
            line[0], line[1], line[2], line[3] = real[SWITCH_FROM_S], now, i, model
            line[4], line[5] = one[SWITCH_KIND], s.models.weight_bytes[model]
        s.shared[SWITCHES_USED] = k + 1
    if s.rules.prefetch == PREFETCH:
        other = next_turns_model(s, i) if one[IS_DECODE] == 1 else next_groups_model(s, i)
        if other >= 0 and s.models.after[model, other] == 1:
            one[FETCHED], one[FETCH_DONE] = other, 0
            rate = rate_from_host(s, one[NODE], other, now)
            start_flow(s, i, FETCH, s.models.weight_bytes[other], rate, now)


@inner_kernel
def next_groups_model(s, i):
    """The model of the first group with another one than the resident, -1 for none."""
    g = s.instances[i, FIRST_GROUP]
    while g >= 0:
        if s.groups[g, GROUP_WAITING] > 0 and s.groups[g, GROUP_MODEL] != s.instances[i, RESIDENT]:
            return s.groups[g, GROUP_MODEL]
        g = s.groups[g, GROUP_NEXT]
    return -1


@inner_kernel
def next_turns_model(s, i):
    """The model of the first turn left in this round with another one than the resident, -1 for none."""
    b = s.batches[s.instances[i, TURN], BATCH_NEXT]
    while b >= 0:
        batch = s.batches[b]
        if batch[IN_ROUND] == 1 and batch[BATCH_COUNT] > 0 and batch[BATCH_MODEL] != s.instances[i, RESIDENT]:
            return batch[BATCH_MODEL]
        b = batch[BATCH_NEXT]
    return -1
