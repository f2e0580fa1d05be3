"""Rounds of decoding by formula: quotas, pace, how many batches keep it, how long a new one waits, how many come."""

import math
from collections.abc import Sequence

import numpy as np

from workbench.pooling.policy import fill_quotas
from workbench.pooling.policy.admission import round_s
from workbench.records import Asked, Positive, Record, not_negative, positive, whole


class Turns(Asked):
    """What the quotas of a round follow from.

    Attributes:
        tbt_s: d, time between tokens that is promised.
        quota_s: Q, the longest quota.
        floor: the least pace.
    """

    tbt_s: Positive = 0.1
    quota_s: Positive = 4.0
    floor: Positive = 0.5


class Round(Record):
    """A round of given batches.

    Attributes:
        pace: α: each batch makes a token every α d. The share of tokens in time is 1/α at most.
        quota_s: float64[k], seconds that each decodes.
        length_s: switches and quotas.
        tokens: float64[k], tokens of each request of the batch in a round.
        playback_s: float64[k], how long a reader takes for them.
    """

    pace: float
    quota_s: np.ndarray
    length_s: float
    tokens: np.ndarray
    playback_s: np.ndarray


def round_of(step_s: Sequence[float], switches_s: float, turns: Turns | None = None) -> Round:
    """How long does each batch decode, and does that keep pace with its readers?

    Parameters:
        step_s: t, step time of each batch.
        switches_s: c, switches of a round together.
        turns: promise and caps.

    >>> example = round_of([0.025] * 3, 3.0, Turns(quota_s=3.0))
    >>> example.pace, example.quota_s.tolist(), example.length_s, example.tokens.round(6).tolist()
    (1.0, [3.0, 3.0, 3.0], 12.0, [120.0, 120.0, 120.0])

    Source: Aegaeon (SOSP'25) §4.3, Eq 2 and 3.
    """
    turns = turns or Turns()
    steps = np.array([positive(value, "step_s") for value in step_s])
    switches_s, quota_s = not_negative(switches_s, "switches_s"), np.empty(steps.size)
    pace = fill_quotas(steps, turns.tbt_s, switches_s, turns.quota_s, turns.floor, quota_s)
    tokens = quota_s / steps
    length_s = switches_s + float(quota_s.sum())
    return Round(pace=pace, quota_s=quota_s, length_s=length_s, tokens=tokens, playback_s=tokens * turns.tbt_s)


def most_batches(step_s: float, switch_s: float, turns: Turns | None = None) -> float:
    """How many equal batches keep pace with their readers on one GPU?

    n Q / (Q + s) with n = d / t: where α reaches 1.

    >>> round(most_batches(9.5e-3, 0.7), 2), round(most_batches(16e-3, 0.7, Turns(tbt_s=0.02)), 2)
    (8.96, 1.06)

    Source: own algebra on Eq 3 of Aegaeon (SOSP'25).
    """
    turns = turns or Turns()
    step_s, switch_s = positive(step_s, "step_s"), not_negative(switch_s, "switch_s")
    return turns.tbt_s / step_s * turns.quota_s / (turns.quota_s + switch_s)


def round_length_s(batches: int, step_s: float, switch_s: float, turns: Turns | None = None) -> float:
    """How long is a round of equal batches, each of a model of its own? In seconds.

    Parameters:
        batches: how many. step_s, switch_s: seconds of a step of each, and of a switch.
        turns: promise and caps; the paper's when None.

    Raises:
        InputError: no whole number of batches, a step that is not above 0 or a switch below 0.

    Source: follows from Eq 2 and 3 of Aegaeon (SOSP'25).
    """
    turns = turns or Turns()
    count = whole(batches, "batches", 1)
    values = positive(step_s, "step_s"), not_negative(switch_s, "switch_s")
    return float(round_s(count, *values, turns.tbt_s, turns.quota_s, turns.floor)[0])


def entry_stall_s(batches: int, step_s: float, switch_s: float) -> tuple[float, float]:
    """How long does a new batch wait for its first turn beside so many equal ones? (on average, at most)

    It has no part in the round that runs, of which half is left on average and all at most; in the next one it comes
    after half of the others on average and after all at most. Its own switch comes on top.

    Parameters:
        batches: those that are there, each of a model of its own. step_s, switch_s: seconds of a step and of a switch.

    Returns:
        Seconds on average, and at most.

    Source: own derivation from the rounds of Aegaeon (SOSP'25) §4.3.
    """
    now_s = round_length_s(batches, step_s, switch_s)
    next_s = round_length_s(batches + 1, step_s, switch_s) * batches / (batches + 1)
    return now_s / 2 + next_s / 2 + switch_s, now_s + next_s + switch_s


class Load(Record):
    """How many batches a pool holds at a steady load.

    Attributes:
        batches: of an instance, on average.
        pace: α with so many.
        lifetime_s: of a request in decoding.
        active: models with a request in decoding.
    """

    batches: float
    pace: float
    lifetime_s: float
    active: float


def steady_load(
    models: int, instances: int, rate_per_s: float, output_tokens: float, step_s: float, switch_s: float,
    turns: Turns | None = None,
) -> Load:  # fmt: skip
    """How many models decode at once when a request lives as long as the pace lets it, which depends on how many do?

    B = M/D (1 - exp(-λ O α(B) d)), the fixed point of the active models and the pace.

    Parameters:
        models, instances: M, D. rate_per_s: λ of each model. output_tokens: O, mean.
        step_s, switch_s, turns: as above.

    Source: own derivation from Theorem 3.1 and Eq 3 of Aegaeon (SOSP'25).
    """
    turns = turns or Turns()
    whole(models, "models", 1), whole(instances, "instances", 1)
    per_token = positive(rate_per_s, "rate_per_s") * positive(output_tokens, "output_tokens") * turns.tbt_s
    a_batch = positive(step_s, "step_s") / turns.tbt_s * (1 + not_negative(switch_s, "switch_s") / turns.quota_s)

    def pace(batches: float) -> float:
        return max(a_batch * batches, turns.floor)

    low, high = 0.0, models / instances
    for _ in range(200):
        middle = (low + high) / 2
        found = -models / instances * math.expm1(-per_token * pace(middle))
        low, high = (middle, high) if found > middle else (low, middle)
    return Load(
        batches=low,
        pace=pace(low),
        lifetime_s=output_tokens * turns.tbt_s * pace(low),
        active=low * instances,
    )
