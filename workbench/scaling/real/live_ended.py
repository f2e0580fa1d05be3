"""How a real live scale-out ended, as its parent knows it."""

from typing import NamedTuple

import numpy as np

from workbench.executor.faults import RunFailed
from workbench.executor.instances.orders import InstanceReport
from workbench.records import Record
from workbench.scaling.real.live_queue import LiveQueue


class Refusal(RunFailed):
    """An instance would not compute with what it was handed: it is another version's."""


class Loss(NamedTuple):
    """A node that died, hung or was cancelled, and when that was noticed, on `time.monotonic`."""

    at_s: float
    node: int
    kind: str


class Ended(Record):
    """What the parent knows at the end; instants on `time.monotonic`.

    Attributes:
        start_s: when the first layer was to be at the tails.
        queues: one a pair.
        finish_s: of each pair and batch.
        slots: (pair, instance, batch, begin, end).
        took: (node, block) -> when.
        late_s: of every step.
        logits: (pair, batch) -> behind its prompts, (requests, vocabulary).
        said: (pair, batch) -> what followed, for each request (count, vocabulary).
        losses: what was lost.
        reports: of the nodes that are left.
    """

    start_s: float
    queues: list[LiveQueue]
    finish_s: list[np.ndarray]
    slots: list[tuple[int, str, int, float, float]]
    took: dict[tuple[int, int], float]
    late_s: list[float]
    logits: dict[tuple[int, int], np.ndarray]
    said: dict[tuple[int, int], tuple[np.ndarray, ...]]
    losses: list[Loss]
    reports: dict[int, InstanceReport]
