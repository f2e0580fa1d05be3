"""One load of weights beside a given sequence of KV transfers on full-duplex links that are shared max-min fairly."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.scaling.model.interference import SharedLink
from workbench.transfer.kernels.fairness import max_min_fair

PREFILL_OUT, DECODE_IN, DECODE_OUT, TARGET_IN = range(4)
PORTS = 4


class Raced(NamedTuple):
    """Seconds of the load of weights, and float64[k] of each KV transfer."""

    load_s: float
    kv_s: np.ndarray


def race_times(link: SharedLink, kv_at_s: Sequence[float]) -> Raced:
    """How long do a load that begins at 0 and KV transfers that begin at given instants take beside each other?

    Weights leave the prefill instance, whose KV goes to the decode instance, or (in opposite directions) the decode
    instance itself. Every port is as fast as the link, each way, and flows share it max-min fairly at every instant.

    Parameters:
        link: sizes, rate and direction; its `batches_per_s` plays no part.
        kv_at_s: when each transfer begins, seconds after the load; negative for before.

    >>> link = SharedLink(bytes_per_s=1.0, weight_bytes=4.0, kv_bytes=1.0, batches_per_s=0.0)
    >>> race_times(link, [1.0])
    Raced(load_s=5.0, kv_s=array([2.]))
    >>> race_times(link.model_copy(update={"same_direction": False}), [1.0])
    Raced(load_s=4.0, kv_s=array([1.]))
    """
    begin_s = np.array([0.0, *kv_at_s])
    if not np.isfinite(begin_s).all():
        raise InputError("holds a number that is not finite", "give seconds", field="kv_at_s")
    count = begin_s.size
    left = np.array([link.weight_bytes] + [link.kv_bytes] * (count - 1))
    out = PREFILL_OUT if link.same_direction else DECODE_OUT
    paths = [(out, TARGET_IN)] + [(PREFILL_OUT, DECODE_IN)] * (count - 1)
    ports, end_s = np.full(PORTS, link.bytes_per_s), np.where(left > 0, np.inf, begin_s)
    now_s = begin_s.min()
    while (open_ := np.flatnonzero(np.isinf(end_s))).size:
        flowing = open_[begin_s[open_] <= now_s]
        rate = np.empty(flowing.size)
        resource = np.array([port for flow in flowing for port in paths[flow]], np.int64)
        max_min_fair(2 * np.arange(flowing.size + 1), resource, ports, rate)
        ends = now_s + left[flowing] / rate
        later = begin_s[open_][begin_s[open_] > now_s]
        next_s = min(ends.min(initial=np.inf), later.min(initial=np.inf))
        done = ends <= next_s
        left[flowing] -= rate * (next_s - now_s)
        end_s[flowing[done]] = next_s
        now_s = next_s
    taken_s = end_s - begin_s
    return Raced(float(taken_s[0]), taken_s[1:])
