"""Exercises on server chains: blocks that fit, when a slow server is better left alone, and whom a job joins."""

from typing import Any

import numpy as np

from workbench.chains import POLICIES, break_even_rate
from workbench.chains.policy.dispatch import choose
from workbench.chains.policy.placement import blocks_that_fit
from workbench.teaching.task import FunctionTask, Rng, Slip, ValueTask


def _draw_blocks(rng: Rng) -> dict[str, Any]:
    return {
        "memory_mb": 100 * int(rng.integers(120, 400)), "block_mb": 10 * int(rng.integers(90, 160)),
        "cache_mb": 10 * int(rng.integers(8, 20)), "jobs": int(rng.integers(3, 12)), "layers": 60,
    }  # fmt: skip


def _blocks(memory_mb: int, block_mb: int, cache_mb: int, jobs: int, layers: int) -> float:
    found = np.empty(1, np.int64)
    blocks_that_fit(np.array([memory_mb]), layers, block_mb, cache_mb, jobs, found)
    return float(found[0])


def _draw_rates(rng: Rng) -> dict[str, Any]:
    return {"fast_per_min": 10 * int(rng.integers(3, 13)), "load_percent": int(rng.integers(20, 81))}


def _break_even(fast_per_min: int, load_percent: int) -> float:
    return break_even_rate(fast_per_min * load_percent / 100, fast_per_min)


def _states(rng: Rng) -> list[tuple[list[int], list[int], list[float]]]:
    found = []
    for _ in range(12):
        count = int(rng.integers(2, 6))
        slots = rng.integers(1, 4, count)
        inside = np.minimum(rng.integers(0, 4, count), slots)
        rates = rng.choice(np.arange(1, 20), count, replace=False) / 10
        found.append((inside.tolist(), slots.tolist(), rates.tolist()))
    full = found[0][1]
    return [*found, (list(full), list(full), found[0][2])]


def _joined(inside: list[int], slots: list[int], rates: list[float]) -> float:
    """The policy takes chains by falling rate; the question does not."""
    order = np.argsort(rates)[::-1]
    state = np.array(inside)[order], np.array(slots)[order], np.array(rates)[order]
    picked = choose(POLICIES["jffc"], *state, 1, np.zeros(2), np.zeros(order.size))
    return float(order[picked]) if picked >= 0 else -1.0


EXERCISES = (
    ValueTask(
        "chains/blocks-hosted",
        "How many blocks does a server host?",
        "A server has {memory_mb} MB. A block takes {block_mb} MB, and {cache_mb} MB of cache for every job it keeps "
        "room for; room is kept for {jobs} jobs on each hosted block. The model has {layers} blocks. How many does the "
        "server host?",
        "blocks",
        _draw_blocks,
        _blocks,
        (
            "What does one hosted block cost with its caches?",
            "A part of a block serves nobody.",
            "⌊memory / (block + cache · jobs)⌋, and at most all blocks.",
        ),
        (
            Slip(
                "a part of a block serves nobody: round down.",
                lambda memory_mb, block_mb, cache_mb, jobs, layers: memory_mb / (block_mb + cache_mb * jobs),
            ),
            Slip(
                "that keeps the cache once for the server; each hosted block keeps its own.",
                lambda memory_mb, block_mb, cache_mb, jobs, layers: (memory_mb - cache_mb * jobs) // block_mb,
            ),
            Slip("that leaves no room for caches.", lambda **n: _blocks(**{**n, "jobs": 0})),
        ),
        tolerance=0.0,
    ),
    ValueTask(
        "chains/break-even",
        "When does a slow server help?",
        "A fast server completes {fast_per_min} jobs a minute, one at a time; jobs arrive (Poisson) at {load_percent} "
        "% of that. A slower one may be added; a job takes the fastest free server. From how many jobs a minute on "
        "does the slower one shorten the mean response time?",
        "jobs/min",
        _draw_rates,
        _break_even,
        (
            "Below that rate a job that lands on the slow server would have been sooner done waiting for the fast one.",
            "Only the ratio of the rates matters: set the fast rate to 1 and the arrival rate to the load.",
            'Move the slow slot in wb.experiment("chains/bounds").explore() until the mean equals the fast slot\'s '
            "alone, 1 / (1 - load).",
        ),
        (
            Slip("that is relative to the fast server.", lambda **n: _break_even(**n) / n["fast_per_min"]),
            Slip(
                "what the fast one has to spare is no measure for the slow one.",
                lambda fast_per_min, load_percent: fast_per_min * (1 - load_percent / 100),
            ),
        ),
        tolerance=0.02,
    ),
    FunctionTask(
        "chains/join",
        "Whom does a job join?",
        "Chain k has inside[k] jobs, slots[k] slots and rates[k] jobs per second and slot; chains come in no order. "
        "Join the fastest free chain: which index does the job get, or -1 if it must wait?",
        "join",
        ("inside", "slots", "rates"),
        _states,
        _joined,
        (
            "Which chains are free?",
            "Among these, whose slot is fastest? The whole chain's rate does not matter: the job gets one slot.",
            "max over the k with inside[k] < slots[k] by rates[k], and -1 where there is none.",
        ),
    ),
)
"""In the order of the notebook."""
