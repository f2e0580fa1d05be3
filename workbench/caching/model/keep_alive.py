"""Nodes that keep a model alive for a while: what share of starts is cold, and what keeping costs."""

from typing import NamedTuple

import numpy as np

from workbench.caching.kernels.keep_alive import keep_alive_nodes
from workbench.caching.policy import STARTS
from workbench.errors import InputError
from workbench.records import Asked, AtLeastOne, ZeroOrMore


class KeepAlive(Asked):
    """A cluster whose nodes serve one model, one request at a time, in whole seconds.

    Attributes:
        nodes: how many; each starts empty.
        memory_keep_s: how long a copy stays in host memory. gpu_keep_s: how long it stays on an idle GPU.
        ssd_to_memory_s, memory_to_gpu_s, serve_s: what a cold start adds, what any load adds, and serving.
        from_last_use: keep-alive in host memory counts from the last use; otherwise from the load.
        by_locality: a request goes to the idle node with the nearest copy; otherwise to the first idle one.
    """

    nodes: AtLeastOne = 100
    memory_keep_s: ZeroOrMore = 10
    gpu_keep_s: ZeroOrMore = 0
    ssd_to_memory_s: ZeroOrMore = 20
    memory_to_gpu_s: ZeroOrMore = 5
    serve_s: AtLeastOne = 3
    from_last_use: bool = False
    by_locality: bool = False


class KeepAliveRun(NamedTuple):
    """What happened to every request, and what was held.

    Attributes:
        kind: int8[n], number of each start in `policy.STARTS`.
        begin_s, finish_s: int64[n], when its node takes it and is done.
        seconds: until the last request is done.
        over_s: seconds with more copies in host memory than nodes that serve from their GPU.
        copy_s: seconds of copies in host memory, summed over nodes.
    """

    kind: np.ndarray
    begin_s: np.ndarray
    finish_s: np.ndarray
    seconds: int
    over_s: int
    copy_s: int

    def shares(self) -> dict[str, float]:
        """Share of starts from each tier."""
        counts = np.bincount(self.kind, minlength=len(STARTS)) / self.kind.size
        return dict(zip(STARTS, counts.tolist(), strict=True))


def keep_alive(arrival_s, cluster: KeepAlive) -> KeepAliveRun:
    """From where does each start find the weights, and how long are copies held?

    The rule is that of the simulation in λScale's artifact (read there, written anew): whole seconds, one model,
    first come first served, the first idle node, host memory dropped `memory_keep_s` after the load however often it
    was used since. `cluster` can drop the last two.

    Parameters:
        arrival_s: float64[n], in order from 0; cut to whole seconds.

    >>> run = keep_alive([0, 40, 45], KeepAlive(nodes=1, memory_keep_s=20))
    >>> run.kind.tolist(), run.finish_s.tolist(), run.copy_s
    ([2, 1, 0], [28, 48, 52], 21)
    """
    arrival = whole_seconds(arrival_s)
    kind = np.empty(arrival.size, np.int8)
    begin, finish, totals = np.empty_like(arrival), np.empty_like(arrival), np.zeros(3, np.int64)
    keep_alive_nodes(arrival, *cluster.model_dump().values(), kind, begin, finish, totals)
    return KeepAliveRun(kind, begin, finish, *totals.tolist())


def whole_seconds(arrival_s) -> np.ndarray:
    """Arrivals cut to whole seconds, int64, refused where they are none, out of order or before 0."""
    arrival = np.asarray(arrival_s, dtype=float)
    if arrival.ndim != 1 or not arrival.size or not np.isfinite(arrival).all():
        raise InputError("needs a row of finite arrival times", "give at least one", field="arrival_s")
    if arrival[0] < 0 or (np.diff(arrival) < 0).any():
        raise InputError("is out of order or starts before 0", "sort it and start at 0", field="arrival_s")
    return np.floor(arrival).astype(np.int64)
