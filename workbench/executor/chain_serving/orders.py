"""What a server of a real run is told, and what it says."""

from typing import NamedTuple

import numpy as np

from workbench.executor.faults import Swap
from workbench.executor.transformer import Shape

VERSION = "seeded"
"""The name of a run's weights: all servers make theirs from the same seed."""


class Session(NamedTuple):
    """One way of a job through a chain; a job whose server died begins another one elsewhere."""

    job: int
    attempt: int


class ServerPlan(NamedTuple):
    """What one server does.

    Attributes:
        shape, seed: of the model, and what its weights are made from.
        first, blocks: the blocks (layers) that it hosts.
        slots: its cache slots beside the weights, one for each session and block: memory is emulated by counting.
        capacity: most tokens of a session.
        trip_s, block_s: seconds of the run for each unit of a pass's work (1, tokens of a prompt, one more token): its
            round trip, and one block.
        batched: whether passes that wait for the same blocks are computed together.
        fault: blocks that change places before anything is computed.
    """

    shape: Shape
    seed: int
    first: int
    blocks: int
    slots: int
    capacity: int
    trip_s: tuple[float, float, float]
    block_s: tuple[float, float, float]
    batched: bool
    fault: Swap | None


class Pass(NamedTuple):
    """Word to a server: a pass is on its way, and there after its round trip.

    Attributes:
        session: whose.
        opens: whether it is the session's first here, which takes slots.
        first, blocks: what to compute.
        sent_s: when it left, on `time.monotonic`.
        work: see `ServerPlan`.
        tokens: what enters block 0, empty elsewhere.
        hidden: activations float32 (tokens, hidden) elsewhere.
    """

    session: Session
    opens: bool
    first: int
    blocks: int
    sent_s: float
    work: tuple[float, float, float]
    tokens: tuple[int, ...]
    hidden: np.ndarray | None


class Close(NamedTuple):
    """Word to a server: the session is over; its slots are free and its cache is dropped."""

    session: Session


class End(NamedTuple):
    """Word to a server: hand in the report."""


class Passed(NamedTuple):
    """A server says: a pass has been computed.

    Attributes:
        session: whose.
        at_s: when, on `time.monotonic`.
        late_s: how much later than its way, its turn and its seconds of computing wanted it.
        hold_s: what computing should have taken.
        hidden: activations behind its blocks, None behind the last of the model.
        logits: float32 (vocabulary,) behind the last block, None elsewhere.
    """

    session: Session
    at_s: float
    late_s: float
    hold_s: float
    hidden: np.ndarray | None
    logits: np.ndarray | None


class ServerReport(NamedTuple):
    """What a server has to say at the end.

    Attributes:
        most_slots: the most slots that were taken at once.
        left: sessions that were never closed.
        passes: how many it computed.
        held_s: seconds that it was computing, or held a result back until its time.
        busy_s: processor seconds of the process.
    """

    most_slots: int
    left: int
    passes: int
    held_s: float
    busy_s: float
