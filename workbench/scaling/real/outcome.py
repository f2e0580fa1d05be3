"""What a run leaves behind in which a model was multicast and served at the same time."""

from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from workbench.errors import WorkbenchError
from workbench.executor.scale import Scale, times_show
from workbench.executor.transformer import Output
from workbench.records import Record

Mode = Literal["pipelines", "wait"]
"""*pipelines*: nodes that hold the model jointly serve in pipelines until each has all of it; *wait*: a node serves
when it has everything."""


class Prompt(NamedTuple):
    """A request: the tokens of its prompt, and how many tokens it is to be answered with."""

    tokens: tuple[int, ...]
    output: int


class LiveRecovery(Record):
    """How a run went on without a node that was lost.

    Attributes:
        node, kind: which, and whether it died or hung.
        noticed_s: when that was noticed, seconds after the start.
        detected_s: from a planted fault to its notice; None where nobody knows when the process went.
        resumed_s: when the survivors began again, in a new group and by a new schedule.
        requests: those that had begun and went on elsewhere.
        blocks_moved: transfers of the new schedule.
    """

    node: int
    kind: Literal["died", "hung"]
    noticed_s: float
    detected_s: float | None
    resumed_s: float
    requests: int
    blocks_moved: int


class LiveRun(Record):
    """One run, with every block checked on arrival. Times are seconds after the agreed start, as the run took them.

    Attributes:
        mode: see `Mode`.
        version: of the weights.
        requests: `request_id, first_token_s, finish_s, first_by, last_by, prompt_tokens, output_tokens, moves`: which
            route said the first and the last token ("pipeline 0", "node 2"), and how often it changed the route.
        tokens: `request_id, place, time_s, token, by`: every token.
        blocks: `node, block, time_s`: when each target held each block.
        pipelines: `pipeline, nodes, formed_s, dissolved_s`; NaN for what never happened.
        switches: `request_id, tokens_before, left_s, first_after_s, by`: requests that left a pipeline, and when the
            next token came after their cache had been computed again.
        complete_s: for each target when it held everything; NaN for one that was lost.
        outputs: for each request its tokens, and the logits that they were chosen from.
        scale: how bytes and seconds of the run stand to those of full size.
        step_s: the shortest time that a link was asked to take for a block.
        overhead: the machine's own part: mean lateness of blocks over the shortest step, or of passes over the mean
            pass, whichever is more.
        waiting_share: share of the wall time in which the processes used no processor, mean over nodes.
        wall_s: from the start to the last token or the last block.
        recovery: what happened after a loss, None without one.
    """

    mode: Mode
    version: str
    requests: pl.DataFrame
    tokens: pl.DataFrame
    blocks: pl.DataFrame
    pipelines: pl.DataFrame
    switches: pl.DataFrame
    complete_s: tuple[float, ...]
    outputs: tuple[Output, ...]
    scale: Scale
    step_s: float
    overhead: float
    waiting_share: float
    wall_s: float
    recovery: LiveRecovery | None = None

    @property
    def first_token_s(self) -> float:
        """When the first request got its first token, seconds at full size."""
        return float(self.requests["first_token_s"].min()) / self.scale.theta

    @property
    def mean_first_token_s(self) -> float:
        """Mean time to the first token, seconds at full size."""
        return float(self.requests["first_token_s"].mean()) / self.scale.theta

    @property
    def label(self) -> str:
        """What the times show: "paced" the plan (the processes mostly waited for a clock), "busy" the machine."""
        return times_show(self.waiting_share)


class BlockRefused(WorkbenchError):
    """A node was given a block that is not this operation's: other bytes, or another version of the weights.

    Attributes:
        node, block: where, and which.
    """

    def __init__(self, node: int, block: int, why: str):
        self.node, self.block = node, block
        super().__init__(f"Node {node} refused what it was given: {why}")


def spoken(rows: list[tuple[int, np.ndarray]]) -> Output:
    """The output of a request from its tokens and the logits of each."""
    return Output(np.array([token for token, _ in rows], dtype=np.int64), np.array([logits for _, logits in rows]))
