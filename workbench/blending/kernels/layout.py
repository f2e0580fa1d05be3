"""What the step loop is given: requests, tree, order and rules, as named tuples of arrays and numbers."""

from typing import NamedTuple

import numpy as np

SINGLE, OPEN, FEEDBACK = 0, 1, 2
"""How an order is scanned: from the front; from both ends with prefill budgets set in advance (the paper's
Algorithm 3); from both ends with a dense batch that follows the memory time of the step."""
LEFT, RIGHT = 0, 1
BY_PEAK, BY_CAP = 0, 1
"""Who is admitted: whoever fits under the predicted peak; whoever fits now under a cap."""


class Jobs(NamedTuple):
    """Requests, one entry each.

    Attributes:
        prompt, output: int64, true token counts.
        expected: int64, estimated output tokens, at least 1.
        node: int32, the inner node above the request's leaf.
        own: int64, prompt tokens that it shares with nobody.
    """

    prompt: np.ndarray
    output: np.ndarray
    expected: np.ndarray
    node: np.ndarray
    own: np.ndarray


class Nodes(NamedTuple):
    """The prefix tree: parent int32 (-1 for the root, node 0, parents first), tokens int64 of the own segment."""

    parent: np.ndarray
    tokens: np.ndarray


class Order(NamedTuple):
    """The order, and the units that a dual scan walks over.

    Attributes:
        request: int64, whom to serve, by place; the requests of a run are those named here.
        unit: int64, the unit of each place.
        density, held, prompt, output: float64 by unit: compute over memory time, mean KV tokens of a request in flight,
            mean prompt tokens that are computed, mean output tokens.
    """

    request: np.ndarray
    unit: np.ndarray
    density: np.ndarray
    held: np.ndarray
    prompt: np.ndarray
    output: np.ndarray


class Rules(NamedTuple):
    """How steps are made.

    Attributes:
        scan: SINGLE, OPEN or FEEDBACK.
        batch: the dense batch, or its cap, in tokens, a multiple of the tile.
        capacity: KV tokens of the pool.
        admission: BY_PEAK or BY_CAP.
        cap: KV tokens up to which BY_CAP admits.
        retain: whether prefixes that nobody uses stay until their room is needed.
        density: compute over memory time of all requests.
        heavy_share: share of the estimated KV reads that units below that density make.
        compute_left, kv_left: estimated tokens to compute and KV tokens to read by all requests.
        patience: a request of the left end that has made so many times its expected output counts to the right one.
    """

    scan: int
    batch: int
    capacity: int
    admission: int
    cap: int
    retain: bool
    density: float
    heavy_share: float
    compute_left: float
    kv_left: float
    patience: float


TOKENS, KV_READ, PAIRS, HELD, DECODES = range(5)
"""Columns of the log of steps: tokens computed, KV tokens read by those that decode, growth of squared prompt positions
(attention over prompts), KV tokens held at the end of the step, requests that decode."""
LOG_COLUMNS = 5
