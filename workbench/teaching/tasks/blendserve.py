"""Exercises on BlendServe: when memory binds, what reordering can gain, and what prompts share."""

from typing import Any

import numpy as np

from workbench.blending.model.costs import costs_of
from workbench.blending.model.prompts import pool_of_tokens
from workbench.blending.model.questions import memory_bound_output, reordering_gain
from workbench.blending.model.tree import tree_of
from workbench.profiles import accelerator, model
from workbench.teaching.task import FunctionTask, Rng, Slip, ValueTask, pick


def _draw_turn(rng: Rng) -> dict[str, Any]:
    return {
        "name": pick(rng, "llama-3-8b", "llama-2-7b"), "gpu": pick(rng, "a100-80gb-sxm", "h100-80gb-sxm"),
        "prompt": 64 * int(rng.integers(2, 33)),
    }  # fmt: skip


def _turn(name: str, gpu: str, prompt: int) -> float:
    return float(memory_bound_output(prompt, costs_of(model(name), accelerator(gpu), 1)))


def _draw_gain(rng: Rng) -> dict[str, Any]:
    compute = 10 * int(rng.integers(12, 120))
    return {
        "compute_s": compute,
        "memory_s": 10 * int(rng.integers(12, 120)) + 5,
        "slow_percent": 5 * int(rng.integers(2, 8)),
    }


def _gain(compute_s: int, memory_s: int, slow_percent: int) -> float:
    slope = slow_percent / 100
    return float(reordering_gain(compute_s / memory_s, slope, slope))


def _prompts(rng: Rng) -> list[tuple[list[list[int]]]]:
    found: list[tuple[list[list[int]]]] = [([[1, 2, 3], [1, 2, 4], [5]],)]
    for _ in range(6):
        heads = [rng.integers(1, 4, int(rng.integers(1, 5))).tolist() for _ in range(2)]
        count = int(rng.integers(2, 7))
        found.append(
            (
                [
                    heads[int(rng.integers(2))] + rng.integers(1, 4, int(rng.integers(1, 5))).tolist()
                    for _ in range(count)
                ],
            )
        )
    return [*found, ([[7, 7], [7, 7]],), ([[1], [2], [3]],)]


def _saved(prompts: list[list[int]]) -> float:
    pool = pool_of_tokens(prompts, np.ones(len(prompts), np.int64))
    tokens = sum(map(len, prompts))
    return (tokens - tree_of(pool).edge_tokens) / tokens


EXERCISES = (
    ValueTask(
        "blendserve/turning-point",
        "When does a request turn memory-bound?",
        "A request to {name} on one {gpu} has a prompt of {prompt} tokens. From how many output tokens on does it "
        "spend more time reading its KV cache than computing?",
        "tokens",
        _draw_turn,
        _turn,
        (
            "Computing costs the same for every token; reading grows with all tokens before.",
            'wb.experiment("blendserve/fig4").explore() draws the line where both are equal.',
            "Compute time is (p + d) times a token's; memory time is the KV of p d + d²/2 tokens by the bandwidth. "
            "Solve for d.",
        ),
        tolerance=0.05,
    ),
    ValueTask(
        "blendserve/gain",
        "How much can reordering gain?",
        "A job computes for {compute_s} s and reads memory for {memory_s} s. Run together, each kind of work lasts as "
        "much longer as {slow_percent} % of the other's time. How many times faster than one after the other can the "
        "best order be?",
        "times",
        _draw_gain,
        _gain,
        (
            "One after the other lasts the sum. What lasts perfect overlap?",
            "With interference the longer kind still ends last, after its own time and a share of the other's.",
            "(c + m) / max(c + a m, m + a c).",
        ),
        (
            Slip("that is without interference.", lambda **n: _gain(**{**n, "slow_percent": 0})),
            Slip("that is the share that is left; turn it over.", lambda **n: 1 / _gain(**n)),
        ),
        tolerance=0.005,
    ),
    FunctionTask(
        "blendserve/sharing",
        "What do prompts share?",
        "Each prompt is a list of token ids. In the order down the prefix tree every token of a shared prefix is "
        "computed once. Which share of all prompt tokens need not be computed?",
        "sharing",
        ("prompts",),
        _prompts,
        _saved,
        (
            "A token is computed once for every prefix that ends with it. How many different prefixes are there?",
            "Put all prefixes, as tuples, into a set.",
            "1 - (number of different prefixes) / (number of tokens).",
        ),
    ),
)
"""In the order of the notebook."""
