"""How many instances of a model an autoscaler wants, by the rules that serving systems use."""

import math

from workbench.jit import lean_kernel
from workbench.serving.policy.scalers import BACKLOG, CONCURRENCY, QUEUE, RATE


@lean_kernel
def decide(kind, par, waiting, outstanding, prompt_tokens, blocks, arrived, n, starting, tick_s):
    """How many instances are wanted, before bounds and windows.

    Parameters:
        kind, par: number of the policy, and float64[8], its parameters; see `workbench.serving.policy.SCALERS`.
        waiting: requests at the router.
        outstanding: requests queued or running on instances.
        prompt_tokens: tokens still to be prefilled, at the router and on instances.
        blocks: KV blocks in use.
        arrived: requests that came since the tick before.
        n: instances that are up or starting.
        starting: those that are starting.
        tick_s: seconds between two ticks.

    Source: *backlog* is the rule of BlitzScale's artifact for instances that do both phases; *concurrency* is
    Knative's; *queue* is that of λScale's artifact: an instance for so many waiting requests unless some are starting,
    and none idle while nobody waits (at most one for each request that is there, which is told without a look at each
    instance). Where no instance is, one waiting request is enough, or it would wait for ever.
    """
    if kind == QUEUE:
        if starting > 0:
            return n
        if waiting == 0:
            return min(n, outstanding)
        return max(1, n + math.floor(waiting / par[0]))
    if kind == BACKLOG:
        rate, lower_s, upper_s, room = par[0], par[1], par[2], par[3]
        low = max(math.ceil(prompt_tokens / (upper_s * rate)), math.ceil(blocks / (par[5] * room)))
        high = max(low, math.ceil(prompt_tokens / (lower_s * rate)), math.ceil(blocks / (par[4] * room)))
        if n < low:
            return (low + high + 1) // 2
        return n - 1 if n > high else n
    if kind == CONCURRENCY:
        return math.ceil((waiting + outstanding) / par[0])
    if kind == RATE:
        return math.ceil(arrived / tick_s / par[0])
    return n


@lean_kernel
def decide_role(decodes, par, prompt_tokens, stored, blocks, n, decoders):
    """How many instances of one role are wanted, before bounds and windows.

    Where there are fewer than the lower bound asks for, the middle of both bounds is wanted; where there are more than
    the upper one, one fewer. Decoding is scaled ahead of time: blocks of both roles count for it.

    Parameters:
        decodes: whether those that decode are meant, or those that compute prompts.
        par: float64[8], the parameters of *roles*, see `workbench.serving.policy.scalers.PARAMETERS`.
        prompt_tokens: tokens still to be prefilled, at the router and on instances that compute prompts.
        stored: tokens for which those have KV blocks, which are to move to instances that decode.
        blocks: KV blocks in use on instances of both roles.
        n: instances of the role that are up or starting.
        decoders: those that decode and are up or starting.

    Source: BlitzScale's artifact (notes on BlitzScale, §2.6). As there, the term of moving KV divides by the rate of
    all decoding instances together, and bounds prefill from both sides alike.
    """
    moving = math.ceil(stored / (max(decoders, 1) * par[7]))
    if decodes:
        low = max(math.ceil(blocks / (par[5] * par[3])), moving)
        slow = math.ceil(stored / (max(decoders, 1) * par[6]))
        high = max(low, math.ceil(blocks / (par[4] * par[3])), slow)
    else:
        low = max(math.ceil(prompt_tokens / (par[2] * par[0])), moving)
        high = max(low, math.ceil(prompt_tokens / (par[1] * par[0])))
    if n < low:
        return (low + high + 1) // 2
    return n - 1 if n > high else n
