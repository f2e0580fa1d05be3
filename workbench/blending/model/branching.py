"""Small pools whose prefix tree branches several times, to watch what sorting and splitting do to it."""

from typing import NamedTuple

import numpy as np

from workbench.blending.model.prompts import Pool, checked_pool
from workbench.records import positive, share, whole


class Branching(NamedTuple):
    """The shape of a prefix tree and the lengths of its requests.

    Attributes:
        levels: shared segments between the root and a request, at least 1. branches: children of every node but the
            last shared ones. members: requests below each of these.
        shared: mean prompt tokens of a shared segment; each has between a fifth of it and nine fifths.
        own: prompt tokens that a request shares with nobody.
        output: output tokens of a usual request, in the middle of all groups; a group's own mean lies up to eight times
            below or above it.
        outliers: share of requests that write `long` times what their group writes.
    """

    levels: int
    branches: int
    members: int
    shared: int = 200
    own: int = 60
    output: int = 400
    outliers: float = 0.1
    long: float = 20.0


def branching_pool(shape: Branching, rng: np.random.Generator) -> Pool:
    """Draw a pool of members x branches^levels requests, in the order of the tree.

    Members of a group write between half and one and a half times its mean; who is an outlier is drawn for each.

    Raises:
        InputError: a number that cannot be.
    """
    for name in ("levels", "branches", "members", "shared", "own", "output"):
        whole(getattr(shape, name), name, 1)
    share(shape.outliers, "outliers")
    positive(shape.long, "long")
    groups = shape.branches**shape.levels
    path = np.empty((groups, shape.levels), np.int64)
    tokens = np.empty((groups, shape.levels), np.int64)
    first = 1
    for level in range(shape.levels):
        count = shape.branches ** (level + 1)
        node = np.repeat(np.arange(count), groups // count)
        path[:, level], first = -first - node, first + count
        tokens[:, level] = np.maximum(np.rint(shape.shared * rng.uniform(0.2, 1.8, count)), 1)[node]
    requests = groups * shape.members
    group = np.repeat(np.arange(groups), shape.members)
    symbols = np.column_stack([path[group], np.arange(requests)])
    lengths = np.column_stack([tokens[group], np.full(requests, shape.own)])
    mean = shape.output * 8.0 ** rng.uniform(-1, 1, groups)
    output = mean[group] * rng.uniform(0.5, 1.5, requests)
    output = np.where(rng.random(requests) < shape.outliers, output * shape.long, output)
    start = np.arange(requests + 1, dtype=np.int64) * (shape.levels + 1)
    return checked_pool(symbols.ravel(), start, lengths.ravel(), np.maximum(np.rint(output), 1).astype(np.int64))
