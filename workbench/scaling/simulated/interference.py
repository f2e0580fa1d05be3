"""Weights and KV on one network card, flow by flow."""

from typing import NamedTuple

import numpy as np

from workbench.queueing.simulated.clock import Clock
from workbench.scaling.model.interference import SharedLink
from workbench.transfer.simulated.fabric import Fabric

PREFILL_OUT, DECODE_IN, DECODE_OUT, TARGET_IN = range(4)
_ARRIVES = 2


class Shared(NamedTuple):
    """One load and the KV transfers around it.

    Attributes:
        load_s: seconds of the load.
        during_s, outside_s: float64[k], seconds of the KV transfers that started while it ran, and of the others.
    """

    load_s: float
    during_s: np.ndarray
    outside_s: np.ndarray


def simulate(link: SharedLink, rng: np.random.Generator, quiet_s: float) -> Shared:
    """KV for `quiet_s`, then a load of weights beside it, then KV for as long again; flows are max-min fair.

    Parameters:
        link: what is sent.
        rng: of the arrivals.
        quiet_s: seconds before the load and after it.
    """
    clock = Clock()
    ports = ("prefill out", "decode in", "decode out", "target in")
    fabric = Fabric(clock, [link.bytes_per_s] * 4, ports)
    flows, over = [], clock.event()

    def load():
        yield clock.at(quiet_s, _ARRIVES)
        out = PREFILL_OUT if link.same_direction else DECODE_OUT
        flow = fabric.start((out, TARGET_IN), link.weight_bytes, "weights", (0, 2, 0, "", ""))
        yield flow.ended
        end_s = clock.now
        yield clock.at(end_s + quiet_s, _ARRIVES)
        over.succeed((quiet_s, end_s))

    def arrivals():
        while not over.triggered:
            yield clock.at(clock.now + rng.exponential(1 / link.batches_per_s), _ARRIVES)
            clock.process(transfer())

    def transfer():
        start_s = clock.now
        flow = fabric.start((PREFILL_OUT, DECODE_IN), link.kv_bytes, "kv", (0, 1, 0, "", ""))
        yield flow.ended
        flows.append((start_s, clock.now))

    clock.process(load())
    if link.batches_per_s * link.kv_bytes > 0:
        clock.process(arrivals())
    start_s, end_s = clock.run(over)
    times = np.array(sorted(flows)).reshape(-1, 2)
    during = (times[:, 0] >= start_s) & (times[:, 0] < end_s)
    taken = times[:, 1] - times[:, 0]
    return Shared(end_s - start_s, taken[during], taken[~during])
