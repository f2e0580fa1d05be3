"""Exercises on Aegaeon: how many models are active, what pace a round keeps, which tokens come in time."""

from typing import Any

import numpy as np

from workbench.pooling.model.rounds import Turns, round_of
from workbench.queueing import active_models
from workbench.serving.kernels.attainment import fill_in_time
from workbench.teaching.task import FunctionTask, Rng, Slip, ValueTask


def _draw_active(rng: Rng) -> dict[str, Any]:
    return {
        "models": 10 * int(rng.integers(4, 31)), "per_hour": int(rng.integers(40, 240)),
        "seconds": int(rng.integers(8, 40)),
    }  # fmt: skip


def _active(models: int, per_hour: int, seconds: int) -> float:
    return active_models(per_hour / 3600, float(seconds), models).mean_active


def _draw_round(rng: Rng) -> dict[str, Any]:
    steps = sorted(int(step) for step in rng.choice(np.arange(15, 61), 3, replace=False))
    return {
        "first_ms": steps[0], "second_ms": steps[1], "third_ms": steps[2], "tbt_ms": int(rng.integers(70, 101)),
        "switch_s": round(float(rng.uniform(0.5, 1.2)), 1), "quota_s": int(rng.integers(2, 5)),
    }  # fmt: skip


def _pace(first_ms: int, second_ms: int, third_ms: int, tbt_ms: int, switch_s: float, quota_s: int) -> float:
    steps = [first_ms / 1e3, second_ms / 1e3, third_ms / 1e3]
    return round_of(steps, 3 * switch_s, Turns(tbt_s=tbt_ms / 1e3, quota_s=quota_s)).pace


def _streams(rng: Rng) -> list[tuple[list[float], float, float]]:
    found = [([3.0, 6.0, 7.0, 8.0], 3.0, 2.0)]
    for _ in range(8):
        gaps = rng.choice([0.03125, 0.0625, 0.125, 0.5, 2.0], int(rng.integers(4, 25)), p=[0.45, 0.3, 0.15, 0.06, 0.04])
        found.append((np.cumsum([float(rng.integers(2, 10)) / 8, *gaps]).tolist(), 1.0, 0.125))
    return found


def _in_time(token_s: list[float], ttft_s: float, tbt_s: float) -> float:
    count = np.zeros(1, np.int64)
    fill_in_time(np.array(token_s), np.array([0, len(token_s)]), np.zeros(1), ttft_s, tbt_s, count)
    return float(count[0]) / len(token_s)


EXERCISES = (
    ValueTask(
        "aegaeon/active-models",
        "How many models are active?",
        "{models} models are each asked {per_hour} times an hour (Poisson), and a request is in flight for {seconds} "
        "s. How many models have a request in flight, on average?",
        "models",
        _draw_active,
        _active,
        (
            "A model is active while it has a request in flight. How likely is it that one has none?",
            "Requests in flight at a model are Poisson with mean rate times time. Mind the hour.",
            "M (1 - exp(-λ T)) with λ per second.",
        ),
        (
            Slip(
                "those are requests in flight; two at one model make it active once.",
                lambda models, per_hour, seconds: models * per_hour / 3600 * seconds,
            ),
            Slip("those are the models with none.", lambda **n: n["models"] - _active(**n)),
        ),
        tolerance=0.005,
    ),
    ValueTask(
        "aegaeon/pace",
        "Does the round keep pace?",
        "Three batches take turns on a GPU; their steps last {first_ms}, {second_ms} and {third_ms} ms, the promise is "
        "a token every {tbt_ms} ms, each of the three switches of a round lasts {switch_s} s, and the longest turn "
        "{quota_s} s. What is α, the number of promised token times in which each batch makes one token?",
        "",
        _draw_round,
        _pace,
        (
            "In a round a batch makes turn / step tokens, which last its readers that many token times.",
            "The slowest batch gets the longest turn; the others as many tokens, in shorter turns.",
            "c max(step) / (d Q) + Σ step / d, with c the three switches together, d the promise, Q the longest turn.",
        ),
        (
            Slip(
                "switches cost time too.",
                lambda first_ms, second_ms, third_ms, tbt_ms, switch_s, quota_s: (
                    (first_ms + second_ms + third_ms) / tbt_ms
                ),
            ),
            Slip("a round has three switches, not one.", lambda switch_s, **n: _pace(switch_s=switch_s / 3, **n)),
            Slip(
                "that is with a turn of full length for each; the faster batches need less.",
                lambda first_ms, second_ms, third_ms, tbt_ms, switch_s, quota_s: (
                    (3 * switch_s + 3 * quota_s) * third_ms / tbt_ms / quota_s
                ),
            ),
        ),
    ),
    FunctionTask(
        "aegaeon/in-time",
        "Which tokens are in time?",
        "A request arrives at time 0. Its first token is due after the promised TTFT, and each further one a promised "
        "TBT after the due time of the one before; tokens that came early are read when they are due. Which share of "
        "the tokens is there when it is due (on the dot counts)?",
        "in_time",
        ("token_s", "ttft_s", "tbt_s"),
        _streams,
        _in_time,
        (
            "Due times do not depend on when tokens came: they are a staircase.",
            "The token with index k (from 0) is due at ttft_s + k tbt_s.",
            "Count the k with token_s[k] <= ttft_s + k * tbt_s, by the number of tokens.",
        ),
    ),
)
"""In the order of the notebook."""
