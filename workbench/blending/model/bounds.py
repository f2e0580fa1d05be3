"""What no order can beat, and what the order down the tree takes: closed forms from sums over the pool."""

from typing import NamedTuple

import numpy as np

from workbench.blending.model.costs import Engine
from workbench.blending.model.prompts import Pool
from workbench.blending.model.tree import Tree, sharing
from workbench.blending.policy import TILE


class Bounds(NamedTuple):
    """Seconds that a pool takes at least.

    Attributes:
        compute_s: every prefix computed once, (1 - s_o) T_comp. memory_s: all KV reads, T_mem.
        ideal_s: T_o, the larger of the two. practical_s: both overlapped as the engine can. sequential_s: their sum.
    """

    compute_s: float
    memory_s: float
    ideal_s: float
    practical_s: float
    sequential_s: float


def bounds(pool: Pool, tree: Tree, engine: Engine) -> Bounds:
    """The optimum and the practical optimum of a pool (BlendServe §3.3, §6.2).

    The time of a step is convex and grows in proportion to its work, so steps that all have the density of the whole
    reach the practical optimum and none goes below it.

    Parameters:
        pool, tree: the requests, and the tree of their prefixes.
        engine: how work becomes seconds.
    """
    compute, memory = _work(pool, np.ones(pool.size, bool), engine)
    compute *= 1.0 - sharing(pool, tree)
    return Bounds(
        compute, memory, max(compute, memory), float(engine.overlapped(compute, memory)), compute + memory
    )  # fmt: skip


def _work(pool: Pool, which: np.ndarray, engine: Engine) -> tuple[float, float]:
    prompt, output = pool.prompt[which].astype(float), pool.output[which].astype(float)
    costs = engine.costs
    reads = float((prompt * output + output**2 / 2).sum())
    return float((prompt + output).sum()) * costs.token_s, reads * costs.kv_token_s


class Phase(NamedTuple):
    """A stretch of a run in which one source's requests are served.

    Attributes:
        source: its name. steps: how many. compute_s, memory_s: work in it. seconds: how long it takes.
    """

    source: str
    steps: float
    compute_s: float
    memory_s: float
    seconds: float


def phases(pool: Pool, tree: Tree, engine: Engine, batch: int) -> list[Phase]:
    """The order down the tree as one stretch a source, in the order of the pool: no overlap reaches across stretches.

    A source takes the steps that its tokens ask for at a full dense batch, or those that its KV reads ask for with the
    pool always full, whichever are more. A step computes at least a tile, and no faster than its weights are read.

    Parameters:
        pool, tree, engine: as of `bounds`.
        batch: the dense batch in tokens.
    """
    costs, found = engine.costs, []
    shared = _shared_by_source(pool, tree)
    weights_s = costs.weight_bytes / costs.memory_bytes_per_s if engine.weight_floor else 0.0
    for place, name in enumerate(pool.sources):
        compute, memory = _work(pool, pool.source == place, engine)
        compute -= shared[place] * costs.token_s
        steps = max(compute / costs.token_s / batch, memory / costs.kv_token_s / costs.pool_tokens)
        compute = max(compute, steps * max(weights_s, TILE * costs.token_s))
        found.append(Phase(name, steps, compute, memory, float(engine.overlapped(compute, memory))))
    return found


def _shared_by_source(pool: Pool, tree: Tree) -> np.ndarray:
    """Prompt tokens that sharing saves, by the source of whoever comes second."""
    saved = np.zeros(len(pool.sources))
    inner = np.flatnonzero(tree.request < 0)[1:]
    leaves = np.concatenate([[0], np.cumsum(tree.request >= 0)])
    below = leaves[tree.last[inner]] - leaves[inner]
    whose = tree.request[tree.request >= 0][leaves[inner]]  # the first request below each node
    np.add.at(saved, pool.source[whose], (below - 1) * tree.tokens[inner])
    return saved
