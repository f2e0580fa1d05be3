"""What an instance is told and what it says while it shares batches with another one."""

from typing import NamedTuple

import numpy as np

from workbench.executor.transformer import ModelFiles
from workbench.executor.transformer_serving.orders import Replace

Batch = tuple[tuple[int, ...], ...]
"""The prompts of a batch, in tokens."""


class InstancePlan(NamedTuple):
    """What one node is and does; everything else it is told on the way.

    Attributes:
        folder: where the nodes meet.
        model: the weights of this operation; no others are ever loaded here.
        files: block files that it reads at the start; empty for a node that begins with nothing.
        computes: whether it loads what it holds and computes.
        batches: the prompts of all batches.
        layer_s, hand_s: seconds for which a layer of each batch is held, and of a hand-over, as run.
        block_s: seconds that each block takes a card.
        pieces: into how many pieces a block is cut on its way.
        cards: network cards, each with a way out of its own.
        capacity: most tokens of a request.
        device: where it computes.
        faults: what happens to blocks that arrive.
    """

    folder: str
    model: ModelFiles
    files: tuple[str, ...]
    computes: bool
    batches: tuple[Batch, ...]
    layer_s: tuple[float, ...]
    hand_s: tuple[float, ...]
    block_s: float
    pieces: int
    cards: int
    capacity: int
    device: str
    faults: tuple[Replace, ...] = ()


class Read(NamedTuple):
    """Word to a host: read these block files from the store, and say `Took` for each."""

    files: tuple[str, ...]


class SendBlocks(NamedTuple):
    """Word to a node: send blocks, each as soon as it is there (piece by piece), from an instant on."""

    flow: int
    node: int
    blocks: tuple[int, ...]
    card: int
    start_s: float


class StopSending(NamedTuple):
    """Word to a node: give up a flow of blocks."""

    flow: int


class Layer(NamedTuple):
    """Word to a node: run one layer of a batch and keep what comes out.

    Attributes:
        batch, turn: which, and how often it was begun before.
        layer: its number.
        due_s: since when this could run; the time for which it is held counts from it, and so does lateness.
    """

    batch: int
    turn: int
    layer: int
    due_s: float


class Hand(NamedTuple):
    """Word to a node: send what came out of the last layer of a batch to another one."""

    batch: int
    turn: int
    node: int


class Rest(NamedTuple):
    """Word to a node: run a batch from layer `first` on; where that is not 0 it waits for what is handed over."""

    batch: int
    turn: int
    first: int
    due_s: float


class Drop(NamedTuple):
    """Word to a node: a batch is begun anew; forget what belongs to this turn of it."""

    batch: int
    turn: int


class Give(NamedTuple):
    """Word to a node: send its layers of the cache of a batch to the node that decodes."""

    batch: int
    turn: int
    node: int


class Decode(NamedTuple):
    """Word to a node: go on with these requests, whose caches are on their way to it.

    Attributes:
        batches: (batch, turn) of each.
        tokens: of each batch the first token of each request.
        count: tokens that are to follow.
    """

    batches: tuple[tuple[int, int], ...]
    tokens: tuple[tuple[int, ...], ...]
    count: int


class Ran(NamedTuple):
    """A node says: a layer of a batch has run, or all that was left of it.

    Attributes:
        batch, turn: which.
        begin_s, end_s: when, on `time.monotonic`.
        late_s: how much later it ended than it should have.
        logits: float32 (requests, vocabulary) behind the last layer, None before.
    """

    batch: int
    turn: int
    begin_s: float
    end_s: float
    late_s: float
    logits: np.ndarray | None


class Denied(NamedTuple):
    """A node says: it will not compute with what it was handed, and why."""

    why: str


class Said(NamedTuple):
    """A node says: what followed the first tokens, logits float32 (count, vocabulary) of each request of each batch."""

    logits: tuple[tuple[np.ndarray, ...], ...]


class InstanceReport(NamedTuple):
    """What one node has to say at the end.

    Attributes:
        late_s: of every block that it received how much later it was there than its card allows.
        busy_s: processor seconds until the last batch was done.
    """

    late_s: list[float]
    busy_s: float
