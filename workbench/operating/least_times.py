"""The least that requests must wait for their tokens however few others there are, and so the most that can be kept."""

from typing import NamedTuple

import numpy as np

from workbench.operating.simulating import Asked
from workbench.profiles import SLO
from workbench.serving import Group

HELPED = 0.5
"""Of a step's time that is left at least where others run the first layers of it: they run half of them at most."""

CLEARLY = 1e-6
"""Relative, and seconds, by which a bound must lie beyond a promise: far more than rounding adds up to."""


class Bound(NamedTuple):
    """What no number of instances can better.

    Attributes:
        share: of the requests that can keep the promise at most; 1 where nothing is known.
        ttft_s, tbt_s: that the share asked for needs at least, each by itself.
    """

    share: float
    ttft_s: float
    tbt_s: float


def bound_of(asked: Asked, slo: SLO, share: float) -> Bound:
    """The most requests that can keep a promise on instances of this kind, as if each were served by an idle one.

    Parameters:
        asked: a run of any size; `until_s` counts.
        slo: the promise; only those by the definition *request* have a bound here.
        share: that is to keep it.
    """
    table = asked.table
    counted = (table["output_tokens"] > 0) & (table["arrival_s"] - table["arrival_s"].min() <= asked.scenario.until_s)
    if slo.definition != "request" or not counted.any():
        return Bound(1.0, 0.0, 0.0)
    ttft_s, tbt_s = (times_s[counted.to_numpy()] for times_s in least_times(asked))
    able = ~_beyond(ttft_s, float(slo.ttft_s)) & ~_beyond(tbt_s, float(slo.tbt_s))
    counts = np.arange(1, able.size + 1)
    last = int(np.argmax(counts / able.size >= share))  # as shares of runs are told: of 100 requests 55 are 55 %
    return Bound(float(able.sum()) / able.size, float(np.sort(ttft_s)[last]), float(np.sort(tbt_s)[last]))


def least_times(asked: Asked) -> tuple[np.ndarray, np.ndarray]:
    """Seconds to the first token and to each further one that no request of a run can undercut, float64[n] both.

    A prompt of P tokens is computed in at least P over the budget or the chunk steps, and the terms of both rows of
    `workbench.serving.StepForm` add up over them; the larger sum is a lower bound. A further token takes a step that
    reads at least P tokens, or, after an eviction or a failure, steps that compute at least P tokens anew; there is
    none where one token is asked for, and the bound 0. Both hold for every dispatch, batch, eviction and failure, since
    no coefficient is negative. Where prefixes are kept, one token of a prompt is computed at least; where others help
    with steps, half of each is left at least. KV that is sent, weights that load, and waiting take no time here.
    """
    table, groups = asked.table, asked.scenario.groups
    prompt = np.maximum(table["prompt_tokens"].to_numpy(), 1).astype(float)
    ttft_s, tbt_s = np.empty(prompt.size), np.empty(prompt.size)
    for name in asked.scenario.models:
        mine = (table["model"] == name).to_numpy()
        alike = [group for group in groups if group.model == name]
        ttft_s[mine] = np.min([_prompt_s(group, prompt[mine]) for group in alike], axis=0)
        tbt_s[mine] = np.min([_further_s(group, prompt[mine]) for group in alike], axis=0)
    return ttft_s, np.where(table["output_tokens"].to_numpy() > 1, tbt_s, 0.0)


def _beyond(least_s: np.ndarray, promised_s: float) -> np.ndarray:
    return least_s > promised_s * (1 + CLEARLY) + CLEARLY


def _prompt_s(group: Group, tokens: np.ndarray) -> np.ndarray:
    """Least seconds of the steps that compute so many tokens of a request."""
    if group.engine.prefix_cache_tokens:
        tokens = np.ones_like(tokens)
    steps = np.ceil(tokens / min(group.engine.budget, group.engine.chunk))
    rows = [(a + e) * steps + b * tokens + c * tokens**2 for a, b, c, _, e in (group.step.compute, group.step.memory)]
    return _left(group) * np.maximum(*rows)


def _further_s(group: Group, prompt: np.ndarray) -> np.ndarray:
    """Least seconds between two tokens of a request."""
    return np.minimum(_left(group) * group.step.seconds(0.0, 0.0, prompt, 1.0), _prompt_s(group, prompt))


def _left(group: Group) -> float:
    """Share of a step's time that is left at least where others help."""
    return HELPED if group.start_up.weights.live else 1.0
