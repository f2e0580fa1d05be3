"""What a node of a serving run is told, what it says, and what travels between nodes beside the weights."""

from typing import Any, NamedTuple

import numpy as np

from workbench.executor.faults import Flip, Swap
from workbench.executor.links import Receive, Send
from workbench.executor.transformer import ModelFiles

HEADER = 256
"""Numbers of a header; its first five tell how many requests follow, with three numbers each."""

MOST_IN_BATCH = (HEADER - 5) // 3


class Segment(NamedTuple):
    """Neighbouring blocks that one node runs, one dispatch of a pass."""

    node: int
    first: int
    count: int


Route = tuple[Segment, ...]
"""The dispatches of one pass through all blocks, in order: a pipeline's, or a single one on a node that has all."""


class Pace(NamedTuple):
    """How long computing takes at full size.

    Attributes:
        least_s: of any pass through all layers: the weights are read once.
        token_s: of a pass for each of its tokens, where that is more.
        dispatch_s: on top for each dispatch to a node.
    """

    least_s: float
    token_s: float = 0.0
    dispatch_s: float = 0.0

    def pass_s(self, tokens: int) -> float:
        """Seconds of a pass of so many tokens through all layers, dispatches left out."""
        return max(self.least_s, tokens * self.token_s)


class Replace(NamedTuple):
    """A planted fault: when a block reaches a node, the bytes of a file lie in its place (another version's, say)."""

    node: int
    block: int
    path: str


class NodePlan(NamedTuple):
    """What one node is to do in one multicast under which it serves.

    Attributes:
        rendezvous, rank, size, sends, receives, timeout_s: as in `workbench.executor.relay.Plan`.
        ranks: node -> rank of every node that takes part.
        model: the weights of this operation; no others are ever loaded.
        files: what a source reads into memory at the start, empty for others.
        holds: blocks that the node has at the start.
        fresh: whether it begins with nothing; else it goes on with what an earlier task of this worker left.
        serves: whether it loads what it holds and computes.
        routes: every route there is.
        capacity: most tokens of a request.
        pace, theta: how long computing takes at full size, and how far time is stretched.
        device: where it computes.
        faults: what happens to blocks that arrive.
    """

    rendezvous: str
    rank: int
    size: int
    ranks: dict[int, int]
    model: ModelFiles
    files: tuple[str, ...]
    holds: tuple[int, ...]
    fresh: bool
    serves: bool
    sends: tuple[Send, ...]
    receives: tuple[Receive, ...]
    routes: tuple[Route, ...]
    capacity: int
    pace: Pace
    theta: float
    device: str
    timeout_s: float
    faults: tuple[Flip | Swap | Replace, ...]


class Start(NamedTuple):
    """Word to a node: the agreed start, on `time.monotonic`."""

    start_s: float


class Item(NamedTuple):
    """One request in a batch: its number, the tokens that enter a pass, and how many it is still to say."""

    request: int
    tokens: tuple[int, ...]
    left: int


class Begin(NamedTuple):
    """Word to the first node of a route: take a batch in, each request with its prompt and all it has said."""

    route: int
    batch: int
    items: tuple[Item, ...]


class Dissolve(NamedTuple):
    """Word to the first node of a route: give its batches back instead of beginning another pass."""

    route: int


class Forget(NamedTuple):
    """Word to a node: the caches of these requests are not needed any more."""

    requests: tuple[int, ...]


class End(NamedTuple):
    """Word to a node: hand in the report."""


class Took(NamedTuple):
    """A node says: it has a block, whole, checked and loaded; `at_s` is when it arrived."""

    block: int
    at_s: float


class Spoke(NamedTuple):
    """A node says: a pass has ended, with these tokens, and the logits that they were chosen from.

    Attributes:
        route, batch: which pass.
        at_s: when, on `time.monotonic`.
        requests, tokens: which requests said what.
        logits: float32 (requests, vocabulary).
    """

    route: int
    batch: int
    at_s: float
    requests: tuple[int, ...]
    tokens: tuple[int, ...]
    logits: np.ndarray


class Left(NamedTuple):
    """A node says: a batch has left a route that dissolves.

    Another node says the batch's tokens, so its last words may be heard after this.

    Attributes:
        route, batch: which.
        at_s: when, on `time.monotonic`.
        items: its requests, each with its last token and how many it is still to say.
    """

    route: int
    batch: int
    at_s: float
    items: tuple[Item, ...]


class Refused(NamedTuple):
    """A node says: a block is not to be used, and why."""

    block: int
    why: str


class Work(NamedTuple):
    """A pass on its way: the batch enters segment `segment` of its route.

    Attributes:
        items: the requests; their tokens count in the first segment.
        sizes: new tokens of each request.
        hidden: activations float32 (all new tokens, hidden) as a tensor, None before the first segment.
    """

    route: int
    batch: int
    segment: int
    items: tuple[Item, ...]
    sizes: tuple[int, ...]
    hidden: Any


def header_of(work: Work) -> np.ndarray:
    """The header that travels before a pass's activations, int64 (`HEADER`,).

    Only a pass that returns to its first segment carries tokens, one a request; elsewhere the activations stand for
    them.
    """
    header = np.zeros(HEADER, dtype=np.int64)
    header[:5] = work.route, work.batch, work.segment, len(work.items), work.hidden is not None
    rows = [
        (item.request, item.tokens[0] if work.hidden is None else size, item.left)
        for item, size in zip(work.items, work.sizes, strict=True)
    ]
    header[5 : 5 + 3 * len(rows)] = np.ravel(rows)
    return header


def work_of(header: np.ndarray) -> Work:
    """The pass that a header announces, still without its activations."""
    route, batch, segment, count, carries = header[:5].tolist()
    rows = header[5 : 5 + 3 * count].reshape(count, 3).tolist()
    items = tuple(Item(request, () if carries else (middle,), left) for request, middle, left in rows)
    return Work(route, batch, segment, items, tuple(row[1] if carries else 1 for row in rows), None)


def carries(header: np.ndarray) -> bool:
    """Whether activations follow a header."""
    return bool(header[4])
