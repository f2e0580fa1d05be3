"""What is due next in a pool, and what happens then.

At one instant transfers end first (by instance, then kind), then requests arrive (by number), then steps, switches and
sleeps end (by instance), then instances decide what to do next (by instance).
"""

import numpy as np

from workbench.jit import inner_kernel
from workbench.pooling.kernels.caches import come, left
from workbench.pooling.kernels.decoding import act_decode, end_steps, poke
from workbench.pooling.kernels.flows import stop_flow
from workbench.pooling.kernels.layout import (
    ACT_S,
    ASLEEP,
    END_S,
    FETCH,
    FLOWS,
    IDLE,
    IS_DECODE,
    LOAD,
    OUT,
    STAGE,
    TIMED,
    WORKING,
)
from workbench.pooling.kernels.prefilling import act_prefill, end_prompt
from workbench.pooling.kernels.switching import end_switch, fetched

NOTHING, FLOW, ENDS, ACTS = range(4)


@inner_kernel
def due(s):
    """When the next thing happens, of which kind it is, and where (instance, or instance x 4 + kind of transfer).

    Last, when the next thing happens that is no end of a decode step: until then instances that decode do not see each
    other.
    """
    time_s, kind, who, shared_s = np.inf, NOTHING, -1, np.inf
    for i in range(s.times.shape[0]):
        for k in range(FLOWS):
            if s.times[i, k] < time_s:
                time_s, kind, who = s.times[i, k], FLOW, i * FLOWS + k
    shared_s = time_s
    for i in range(s.times.shape[0]):
        if s.times[i, END_S] < shared_s and (s.instances[i, STAGE] != WORKING or s.instances[i, IS_DECODE] == 0):
            shared_s = s.times[i, END_S]
        if s.times[i, END_S] < time_s:
            time_s, kind, who = s.times[i, END_S], ENDS, i
    for i in range(s.times.shape[0]):
        shared_s = min(shared_s, s.times[i, ACT_S])
        if s.times[i, ACT_S] < time_s:
            time_s, kind, who = s.times[i, ACT_S], ACTS, i
    return time_s, kind, who, shared_s


@inner_kernel
def happen(s, now, kind, who, shared_s):
    """Do what is due; an instance that decodes goes on alone until something else happens, at `shared_s`."""
    if kind == FLOW:
        arrived(s, who // FLOWS, who % FLOWS, now)
    elif kind == ENDS:
        s.times[who, END_S] = np.inf
        stage = s.instances[who, STAGE]
        if stage == TIMED:
            end_switch(s, who, now)
        elif stage == ASLEEP:
            s.instances[who, STAGE], s.times[who, ACT_S] = IDLE, now
        elif s.instances[who, IS_DECODE] == 1:
            # Where transfers share a host, the end of a turn elsewhere could hasten one into this GPU.
            end_steps(s, who, now, shared_s if s.pool.host_bytes_per_s == np.inf else now)
        else:
            end_prompt(s, who, now)
    else:
        s.times[who, ACT_S] = np.inf
        if s.instances[who, IS_DECODE] == 1:
            act_decode(s, who, now)
        else:
            act_prefill(s, who, now)


@inner_kernel
def arrived(s, i, kind, now):
    """A transfer of instance `i` is done."""
    stop_flow(s, i, kind, now)
    if kind == LOAD:
        end_switch(s, i, now)
    elif kind == FETCH:
        fetched(s, i, now)
    else:
        if kind == OUT:
            left(s, i, now)
        else:
            come(s, i, now)
        poke(s, i, now)
