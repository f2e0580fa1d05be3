"""Prompts: which group and instance takes a request (Algorithm 1), and instances that work through their groups."""

import numpy as np

from workbench.jit import inner_kernel
from workbench.pooling.kernels.caches import leave
from workbench.pooling.kernels.decoding import hand_over
from workbench.pooling.kernels.emitting import emit, finish
from workbench.pooling.kernels.layout import (
    ACT_S,
    ARRIVAL_S,
    BEGUN,
    BUSY_S,
    END_S,
    FAILED,
    FIRST_GROUP,
    GROUP,
    GROUP_BLOCKS,
    GROUP_HEAD,
    GROUP_MODEL,
    GROUP_NEXT,
    GROUP_TAIL,
    GROUP_TAKEN,
    GROUP_WAITING,
    GROUPS_USED,
    IDLE,
    IS_DECODE,
    JOB,
    LAST_GROUP,
    MODEL,
    NEXT,
    OLDEST,
    OUTPUT,
    OUTS,
    PREFILL_S,
    PREFILLS,
    PROMPT,
    RESIDENT,
    SINCE_SWITCH_S,
    STAGE,
    STATUS,
    STEP_S,
    TARGET,
    WAIT_S,
    WAITING_OUT,
    WORKING,
)
from workbench.pooling.kernels.switching import begin_switch
from workbench.pooling.policy.groups import has_room, least
from workbench.pooling.policy.memory import blocks_of
from workbench.pooling.policy.names import BY_COUNT, BY_TIME
from workbench.pooling.policy.steps import prompt_s


@inner_kernel
def line_up(s, r, now):
    """Give a request to the first group with room, else to a new group of the least loaded instance."""
    row, rules, models = s.requests[r], s.rules, s.models
    model = row[MODEL]
    blocks = blocks_of(row[PROMPT], rules.block_tokens)
    begin, end = s.first[models.home[model]], s.first[models.home[model] + 1]
    last = begin
    for i in range(begin, end):
        if s.instances[i, IS_DECODE] == 1:
            continue
        last = i + 1
        g = s.instances[i, FIRST_GROUP]
        while g >= 0:
            group = s.groups[g]
            if group[GROUP_MODEL] == model and has_room(
                rules.group_rule, rules.group_limit, group[GROUP_TAKEN], group[GROUP_WAITING], group[GROUP_BLOCKS],
                blocks, models.capacity[model],
            ):  # fmt: skip
                join(s, i, g, r, blocks, now)
                return
            g = group[GROUP_NEXT]
        s.many[i] = load_of(s, i)
    i = least(s.many, begin, last)
    g = s.shared[GROUPS_USED]
    s.shared[GROUPS_USED] += 1
    group = s.groups[g]
    group[GROUP_MODEL], group[GROUP_HEAD], group[GROUP_NEXT] = model, -1, -1
    if s.instances[i, FIRST_GROUP] < 0:
        s.instances[i, FIRST_GROUP] = g
    else:
        s.groups[s.instances[i, LAST_GROUP], GROUP_NEXT] = g
    s.instances[i, LAST_GROUP] = g
    join(s, i, g, r, blocks, now)


@inner_kernel
def join(s, i, g, r, blocks, now):
    """Put a request at the end of a group, and rouse its instance."""
    group, row = s.groups[g], s.requests[r]
    row[GROUP], row[PREFILLS], row[NEXT] = g, i, -1
    if group[GROUP_HEAD] < 0:
        group[GROUP_HEAD] = r
    else:
        s.requests[group[GROUP_TAIL], NEXT] = r
    group[GROUP_TAIL] = r
    group[GROUP_TAKEN] += 1
    group[GROUP_WAITING] += 1
    group[GROUP_BLOCKS] += blocks
    if s.instances[i, STAGE] == IDLE:
        s.times[i, ACT_S] = now


@inner_kernel
def load_of(s, i):
    """Seconds of work with switches, requests, or groups of an instance, the request in hand included."""
    one, models, job = s.instances[i], s.models, s.instances[i, JOB]
    model = one[RESIDENT] if one[TARGET] < 0 else one[TARGET]
    total = 0.0
    if job >= 0:
        total = prompt_s(models.prefill, s.requests[job, MODEL], s.requests[job, PROMPT])
        model = s.requests[job, MODEL]
    requests, groups = (1, 1) if job >= 0 else (0, 0)
    g = one[FIRST_GROUP]
    while g >= 0:
        group = s.groups[g]
        if group[GROUP_WAITING] > 0:
            if job < 0 or s.requests[job, GROUP] != g:
                groups += 1
            requests += group[GROUP_WAITING]
            if s.rules.load_rule == BY_TIME:
                if group[GROUP_MODEL] != model:
                    model = group[GROUP_MODEL]
                    total += models.assumed_s[model]
                r = group[GROUP_HEAD]
                while r >= 0:
                    if s.requests[r, STATUS] != FAILED:
                        total += prompt_s(models.prefill, model, s.requests[r, PROMPT])
                    r = s.requests[r, NEXT]
        g = group[GROUP_NEXT]
    if s.rules.load_rule == BY_TIME:
        return total
    return float(requests if s.rules.load_rule == BY_COUNT else groups)


@inner_kernel
def act_prefill(s, i, now):
    """Take the next request of the front group, switch to its model if need be, and process its prompt."""
    one, real = s.instances[i], s.reals[i]
    one[STAGE] = IDLE
    if one[JOB] < 0:
        while one[FIRST_GROUP] >= 0 and s.groups[one[FIRST_GROUP], GROUP_WAITING] == 0:
            one[FIRST_GROUP] = s.groups[one[FIRST_GROUP], GROUP_NEXT]
        if one[FIRST_GROUP] < 0:
            return
        if s.rules.overlap == 0 and one[OUTS] > 0:
            one[STAGE] = WAITING_OUT
            return
        group = s.groups[one[FIRST_GROUP]]
        r = group[GROUP_HEAD]
        while s.requests[r, STATUS] == FAILED:
            r = s.requests[r, NEXT]
        group[GROUP_HEAD] = s.requests[r, NEXT]
        group[GROUP_WAITING] -= 1
        group[GROUP_BLOCKS] -= blocks_of(s.requests[r, PROMPT], s.rules.block_tokens)
        one[JOB], s.requests[r, BEGUN] = r, 1
    r = one[JOB]
    model = s.requests[r, MODEL]
    if one[RESIDENT] != model:
        begin_switch(s, i, model, now)
        return
    s.moments[r, WAIT_S] = now - s.moments[r, ARRIVAL_S]
    real[STEP_S] = prompt_s(s.models.prefill, model, s.requests[r, PROMPT])
    one[STAGE], s.times[i, END_S] = WORKING, now + real[STEP_S]


@inner_kernel
def end_prompt(s, i, now):
    """The prompt is processed: its first token comes, and its KV cache goes to the host, for who decodes."""
    one, real = s.instances[i], s.reals[i]
    r = one[JOB]
    one[JOB], one[STAGE] = -1, IDLE
    real[BUSY_S] += real[STEP_S]
    real[SINCE_SWITCH_S] += real[STEP_S]
    s.times[i, ACT_S] = now
    s.moments[r, PREFILL_S] += real[STEP_S]
    if s.requests[r, OUTPUT] > 0:
        emit(s, r, now)
    if s.requests[r, OUTPUT] <= 1:
        finish(s, r, now)
        return
    leave(s, i, r, now)
    hand_over(s, r, now)


@inner_kernel
def give_up(s, now):
    """Requests that have waited too long for their prompt to begin fail."""
    oldest = s.shared[OLDEST]
    while oldest < s.requests.shape[0] and s.moments[oldest, ARRIVAL_S] + s.rules.give_up_s <= now:
        row = s.requests[oldest]
        if row[STATUS] == 0 and row[BEGUN] == 0:
            group = s.groups[row[GROUP]]
            group[GROUP_WAITING] -= 1
            group[GROUP_BLOCKS] -= blocks_of(row[PROMPT], s.rules.block_tokens)
            finish(s, oldest, np.nan)
            row[STATUS] = FAILED
        oldest += 1
    s.shared[OLDEST] = oldest
