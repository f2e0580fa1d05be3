"""Admission by formulas: the prompt and the decoding of a request are judged apart, each against the slack left."""

import math

import numpy as np

from workbench.jit import inner_kernel
from workbench.pooling.kernels.layout import (
    ARRIVAL_S,
    BELIEVED,
    END_S,
    FAILED,
    FIRST_GROUP,
    GROUP_BLOCKS,
    GROUP_HEAD,
    GROUP_MODEL,
    GROUP_NEXT,
    GROUP_TAKEN,
    GROUP_WAITING,
    IS_DECODE,
    JOB,
    MADE,
    MODEL,
    NEXT,
    PROMPT,
    RESIDENT,
    STAGE,
    STATUS,
    SWITCH_FROM_S,
    WORKING,
)
from workbench.pooling.kernels.prefilling import load_of
from workbench.pooling.policy.admission import decoding_fits
from workbench.pooling.policy.groups import has_room, least
from workbench.pooling.policy.memory import blocks_of
from workbench.pooling.policy.steps import decode_step_s, prompt_s


@inner_kernel
def by_estimates(s, r, now):
    """Whether the first token comes in time, no prompt behind it is late, and a round then fits the slack of all."""
    first_s = first_token_s(s, r, now)
    if first_s == np.inf or math.ceil(s.rules.margin * s.requests[r, BELIEVED]) <= 1:
        return first_s < np.inf
    return round_fits(s, r, first_s)


@inner_kernel
def first_token_s(s, r, now):
    """When its first token comes by estimate; infinity where it, or a prompt that waits behind it, is late."""
    models, model, last_place = s.models, s.requests[r, MODEL], 0
    home = models.home[model]
    blocks = blocks_of(s.requests[r, PROMPT], s.rules.block_tokens)
    begin, end = s.first[home], s.first[home + 1]
    for i in range(begin, end):
        if s.instances[i, IS_DECODE] == 1:
            continue
        last_place = i + 1
        g = s.instances[i, FIRST_GROUP]
        while g >= 0:
            group = s.groups[g]
            if group[GROUP_MODEL] == model and has_room(
                s.rules.group_rule, s.rules.group_limit, group[GROUP_TAKEN], group[GROUP_WAITING], group[GROUP_BLOCKS],
                blocks, models.capacity[model],
            ):  # fmt: skip
                return walk(s, i, g, r, now)
            g = group[GROUP_NEXT]
        s.many[i] = load_of(s, i)
    return walk(s, least(s.many, begin, last_place), -1, r, now)


@inner_kernel
def walk(s, i, joined, r, now):
    """Go through an instance's queue with the request at the end of group `joined`, or behind all where that is -1."""
    one, models, rules = s.instances[i], s.models, s.rules
    at_s, model, found_s = now, one[RESIDENT], np.inf
    if one[JOB] >= 0:
        job = one[JOB]
        model = s.requests[job, MODEL]
        if one[STAGE] == WORKING:
            at_s = s.times[i, END_S]
        else:
            left_s = models.assumed_s[model] - (now - s.reals[i, SWITCH_FROM_S])
            at_s += 0.0 if one[RESIDENT] == model else max(0.0, left_s)
            at_s += prompt_s(models.prefill, model, s.requests[job, PROMPT])
    g = one[FIRST_GROUP]
    while g >= 0:
        group = s.groups[g]
        if group[GROUP_WAITING] > 0 or g == joined:
            if group[GROUP_MODEL] != model:
                model = group[GROUP_MODEL]
                at_s += models.assumed_s[model]
            q = group[GROUP_HEAD]
            while q >= 0:
                if s.requests[q, STATUS] != FAILED:
                    at_s += prompt_s(models.prefill, model, s.requests[q, PROMPT])
                    if at_s > s.moments[q, ARRIVAL_S] + rules.promise_ttft_s:
                        return np.inf
                q = s.requests[q, NEXT]
            if g == joined:
                at_s += prompt_s(models.prefill, model, s.requests[r, PROMPT])
                found_s = at_s
        g = group[GROUP_NEXT]
    if joined < 0:
        mine = s.requests[r, MODEL]
        at_s += (0.0 if mine == model else models.assumed_s[mine]) + prompt_s(
            models.prefill, mine, s.requests[r, PROMPT]
        )
        found_s = at_s
    return found_s if found_s <= s.moments[r, ARRIVAL_S] + rules.promise_ttft_s else np.inf


@inner_kernel
def round_fits(s, r, first_s):
    """Whether decoding keeps pace with as many batches on the fullest instance as the models inside make.

    Every model counts one batch with all its requests, at their full lengths. The slack of a request is what its next
    token's deadline leaves after a prompt that is still to come; that of the new one what its first token leaves.
    """
    models, home, rules = s.models, s.models.home[s.requests[r, MODEL]], s.rules
    decoders = 0
    for i in range(s.first[home], s.first[home + 1]):
        decoders += s.instances[i, IS_DECODE]
    count = models.home.size
    context, batch = s.some[:count], s.chosen[:count]
    for m in range(count):
        context[m], batch[m] = 0, 0
    slack_s = s.moments[r, ARRIVAL_S] + rules.promise_ttft_s + rules.promise_tbt_s - first_s
    for q in range(r + 1):
        if (s.requests[q, STATUS] != 0 and q != r) or models.home[s.requests[q, MODEL]] != home:
            continue
        believed = max(s.requests[q, MADE] + 1, math.ceil(rules.margin * s.requests[q, BELIEVED]))
        context[s.requests[q, MODEL]] += s.requests[q, PROMPT] + believed
        batch[s.requests[q, MODEL]] += 1
    longest_s, switch_s, active = 0.0, 0.0, 0
    for m in range(count):
        if batch[m] > 0:
            active += 1
            longest_s = max(longest_s, decode_step_s(models.decode, m, context[m], batch[m]))
            switch_s = max(switch_s, models.assumed_s[m])
    batches = math.ceil(active / decoders)
    return decoding_fits(batches, longest_s, switch_s, rules.tbt_s, rules.most_s, rules.floor, slack_s)
