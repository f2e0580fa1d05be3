"""When instances were first short: the backlog of prompts against what those that are up can process in time."""

import numpy as np

from workbench.serving.model import Lowered, Outcome
from workbench.serving.model.lowered import DECODE, REJECTED
from workbench.serving.model.scaled import PIPED, UP
from workbench.serving.model.scaling_tables import state_changes


def needed_s(lowered: Lowered, outcome: Outcome, rates: np.ndarray, ttft_s: float) -> np.ndarray:
    """The instant at which each load of weights was first needed, float64[k] as `Outcome.loads`; NaN where it was not.

    A model is *short* while the prompt tokens of its requests that have arrived and have no first token yet are more
    than its instances that are up process within the promised TTFT: a request that comes then waits too long, however
    it is dispatched. A prompt counts whole until its first token, and once, also where it is processed again. A load
    was needed from the beginning of the first such span that lasts to its decision or begins later; where that is only
    after the instance is up, it was not needed. Instances that only decode are left out: no such need is told for them.

    Parameters:
        lowered, outcome: the run.
        rates: float64[M], prompt tokens/s of an instance of each model (`workbench.operating.growing.prompt_rate`).
        ttft_s: the promise.
    """
    loads, found = outcome.loads, np.full(len(outcome.loads), np.nan)
    row = loads[:, 2].astype(np.int64)
    model, decodes = lowered.instances.model[row], lowered.instances.role[row] == DECODE
    for m in np.unique(model[~decodes]):
        mine = np.flatnonzero((model == m) & ~decodes)
        starts_s, ends_s = short_spans(lowered, outcome, int(m), float(rates[m]), ttft_s)
        at = np.searchsorted(ends_s, loads[mine, 0])
        there = at < starts_s.size
        begun_s = starts_s[at[there]]
        up_s = np.where(np.isnan(loads[mine, 1]), np.inf, loads[mine, 1])[there]
        found[mine[there]] = np.where(begun_s <= up_s, begun_s, np.nan)
    return found


def short_spans(
    lowered: Lowered, outcome: Outcome, m: int, rate: float, ttft_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Where spans begin and end in which a model is short, see `needed_s`; the last end may be infinity."""
    requests = lowered.requests
    came = (requests.model == m) & (requests.arrival_s <= lowered.until_s) & (outcome.status != REJECTED)
    first_s = np.fmin(outcome.first_token_s, outcome.finish_s)  # of one that asks for no tokens, its end
    through = came & ~np.isnan(first_s)
    change_s, row, old, new = state_changes(lowered, outcome)
    serving = (UP, PIPED)
    mine = (lowered.instances.model[row] == m) & (lowered.instances.role[row] != DECODE)
    up = (np.isin(new, serving) * 1 - np.isin(old, serving))[mine]
    change_s = change_s[mine]
    times = np.concatenate([requests.arrival_s[came], first_s[through], change_s])
    tokens = np.concatenate([requests.prompt[came], -requests.prompt[through], np.zeros(change_s.size, np.int64)])
    instances = np.concatenate([np.zeros(times.size - up.size, np.int64), up])
    order = np.argsort(times, kind="stable")
    times, tokens, instances = times[order], np.cumsum(tokens[order]), np.cumsum(instances[order])
    settled = np.append(np.diff(times) > 0, True)[: times.size]  # what holds after all that happens at one instant
    times, short = times[settled], (tokens > ttft_s * rate * instances)[settled]
    turns = np.diff(short.astype(np.int8), prepend=0)
    starts_s, ends_s = times[turns == 1], times[turns == -1]
    return starts_s, np.append(ends_s, np.inf) if starts_s.size > ends_s.size else ends_s
