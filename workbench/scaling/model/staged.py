"""A pipeline at work: which node runs which block of which batch when, and how long nodes stand idle."""

import itertools
from typing import Literal

import numpy as np
import polars as pl

from workbench.records import Asked, AtLeastOne, NotNegative, Positive
from workbench.scaling.kernels.staged import free_running, lock_step

Pace = Literal["free", "lock step"]
"""*free*: a node takes the next batch when it is done with one; *lock step*: all batches finish their block before any
goes on (λScale's artifact)."""


class Staged(Asked):
    """A pipeline and what passes through it.

    Attributes:
        runs: the node that runs each execution block, nodes numbered from 0.
        block_s: seconds that a block computes.
        overhead_s: of each dispatch of a block.
        batches: requests' batches that come, all at once.
        in_flight: of them at a time.
        tokens: that each makes.
        pace: see `Pace`.
    """

    runs: tuple[int, ...]
    block_s: Positive
    overhead_s: NotNegative = 0.0
    batches: AtLeastOne
    in_flight: AtLeastOne
    tokens: AtLeastOne
    pace: Pace = "free"

    @property
    def stages(self) -> tuple[list[int], list[int]]:
        """Node and number of blocks of each stage: neighbouring blocks of one node, but single ones in lock step."""
        if self.pace == "lock step":
            return list(self.runs), [1] * len(self.runs)
        found = [(node, len(list(blocks))) for node, blocks in itertools.groupby(self.runs)]
        return [node for node, _ in found], [count for _, count in found]

    @property
    def seconds(self) -> list[float]:
        """Seconds of each stage."""
        return [count * (self.block_s + self.overhead_s) for count in self.stages[1]]


def staged_starts(asked: Staged) -> np.ndarray:
    """When each stage of each batch and token begins, float64[batches, tokens, stages]."""
    starts = np.empty((asked.batches, asked.tokens, len(asked.stages[0])))
    run = lock_step if asked.pace == "lock step" else free_running
    node, seconds = np.array(asked.stages[0]), np.array(asked.seconds)
    run(node, seconds, max(asked.runs) + 1, asked.tokens, asked.in_flight, starts)
    return starts


def staged_table(asked: Staged, starts: np.ndarray) -> pl.DataFrame:
    """One row a stage of a batch and token: `batch, token, stage, node, begin_s, end_s`."""
    batch, token, stage = (grid.ravel() for grid in np.indices(starts.shape))
    begin = starts.ravel()
    node, seconds = np.array(asked.stages[0])[stage], np.array(asked.seconds)[stage]
    columns = {"batch": batch, "token": token, "stage": stage, "node": node}
    return pl.DataFrame({**columns, "begin_s": begin, "end_s": begin + seconds})


def idle_shares(asked: Staged, table: pl.DataFrame) -> pl.DataFrame:
    """Share of the steady state for which each node is idle: `node, idle_share`.

    The steady state lasts from the first instant at which every node has begun something and as many batches as there
    is room for are inside, to the first at which a batch is done or, with more batches than room, at which the last one
    enters.

    Parameters:
        asked, table: what passes, and when: of `staged_table`.
    """
    entered = table.group_by("batch").agg(pl.col("begin_s").min())["begin_s"].sort()
    begin = max(
        float(table.group_by("node").agg(pl.col("begin_s").min())["begin_s"].max()),
        float(entered[min(asked.in_flight, asked.batches) - 1]),
    )
    done = float(table.group_by("batch").agg(pl.col("end_s").max())["end_s"].min())
    end = max(done, float(entered[-1]))
    busy = (pl.min_horizontal("end_s", pl.lit(end)) - pl.max_horizontal("begin_s", pl.lit(begin))).clip(lower_bound=0)
    shares = table.group_by("node").agg(busy.sum().alias("busy_s")).sort("node")
    span = end - begin
    return shares.select("node", idle_share=1 - pl.col("busy_s") / span if span > 0 else pl.lit(0.0))
