"""Exercises on λScale: steps of the pipeline, the first execution pipeline, the best number of blocks."""

from typing import Any

import numpy as np

from workbench.teaching.task import FunctionTask, Rng, Slip, ValueTask, pick
from workbench.transfer.model import Hockney, arrival_steps, milestones_of, optimal_blocks


def _sizes(rng: Rng) -> list[tuple[int, int]]:
    drawn = [(int(rng.integers(2, 33)), int(rng.integers(1, 17))) for _ in range(9)]
    return [(8, 16), *drawn, (2, 1), (9, 4), (16, 1)]


def _steps(nodes: int, blocks: int) -> float:
    return float(arrival_steps("binomial_pipeline", nodes, blocks).max())


def _draw_first(rng: Rng) -> dict[str, Any]:
    copies = pick(rng, 2, 4)
    return {"copies": copies, "nodes": copies * pick(rng, 3, 4, 5, 6), "blocks": copies * pick(rng, 2, 3, 4)}


def _first(copies: int, nodes: int, blocks: int, order: str = "contiguous") -> float:
    landed = np.rint(arrival_steps("k_way", nodes, blocks, sources=copies, order=order)).astype(np.int64)
    return float(milestones_of(landed, copies).one_per_group)


def _complete(copies: int, nodes: int, blocks: int) -> float:
    return float(arrival_steps("k_way", nodes, blocks, sources=copies, order="contiguous").max())


def _draw_blocks(rng: Rng) -> dict[str, Any]:
    return {
        "gigabytes": int(rng.integers(10, 60)), "nodes": pick(rng, 4, 8, 16, 32), "gbps": pick(rng, 50, 100, 200),
        "overhead_ms": int(rng.integers(2, 30)),
    }  # fmt: skip


def _best(gigabytes: int, nodes: int, gbps: int, overhead_ms: int) -> float:
    cost = Hockney(alpha_s=overhead_ms / 1e3, bytes_per_s=gbps / 8 * 1e9)
    return float(optimal_blocks("binomial_pipeline", nodes, gigabytes * 1e9, cost).integer)


EXERCISES = (
    FunctionTask(
        "lambdascale/steps",
        "How many steps?",
        "One node holds all blocks. In a step every node sends at most one block and receives at most one. After how "
        "many steps of a binomial pipeline do all `nodes` (the source is one of them) hold all `blocks`?",
        "steps",
        ("nodes", "blocks"),
        _sizes,
        _steps,
        (
            "How many steps until the first block is everywhere, if each holder passes it on in every step?",
            "The source needs one step for each block; the last one must then still spread.",
            "⌈log2 nodes⌉ + blocks - 1. Take care that 8 nodes give 3 exactly.",
        ),
    ),
    ValueTask(
        "lambdascale/first-pipeline",
        "When can the first pipeline serve?",
        "{copies} complete copies scale to {nodes} nodes (sources included) with {blocks} blocks, in k-way multicast "
        "with contiguous rotated order. After how many steps can destinations, one of each sub-group, first serve "
        "together?",
        "steps",
        _draw_first,
        _first,
        (
            'wb.experiment("lambdascale/fig5").explore() draws the grid; dashed frames are pipelines.',
            "Each sub-group begins at another block. How many blocks must a destination have, if all sub-groups are "
            "equally far?",
            'Set nodes, copies and blocks of lambdascale/fig5 and read the bar "first pipeline possible".',
        ),
        (
            Slip("that is when every node is complete; a pipeline needs no complete node.", _complete),
            Slip("that is for the naive order, where all begin at block 0.", lambda **n: _first(**n, order="naive")),
        ),
        tolerance=0.0,
    ),
    ValueTask(
        "lambdascale/best-blocks",
        "Into how many blocks?",
        "{gigabytes} GB (of 10⁹ bytes) go to {nodes} nodes, source included, by binomial pipeline over links of "
        "{gbps} Gbps; a step costs {overhead_ms} ms beyond sending its block. Which number of blocks is fastest "
        "(a neighbour counts too)?",
        "blocks",
        _draw_blocks,
        _best,
        (
            "There are (⌈log2 nodes⌉ + m - 1) steps; what does one cost with m blocks?",
            "Multiply out: one part of the time grows with m, another falls with 1 / m.",
            "m = sqrt((⌈log2 nodes⌉ - 1) · S / B / α), rounded.",
        ),
        (
            Slip(
                "that balances one step's overhead and sending; the number of steps counts too.",
                lambda gigabytes, nodes, gbps, overhead_ms: gigabytes * 8 / gbps / (overhead_ms / 1e3),
            ),
        ),
        tolerance=0.0,
        slack=1.0,
    ),
)
"""In the order of the notebook."""
