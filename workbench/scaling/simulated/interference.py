"""Weights and KV on one network card, flow by flow."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.queueing.simulated.clock import Clock
from workbench.scaling.model.interference import SharedLink
from workbench.scaling.model.link_race import DECODE_IN, DECODE_OUT, PREFILL_OUT, TARGET_IN, Raced
from workbench.transfer.simulated.fabric import Fabric

PORTS = ("prefill out", "decode in", "decode out", "target in")
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
    fabric = Fabric(clock, [link.bytes_per_s] * len(PORTS), PORTS)
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


def simulate_race(link: SharedLink, kv_at_s: Sequence[float]) -> Raced:
    """A load beside KV transfers that begin at given instants; see `workbench.scaling.model.link_race.race_times`."""
    clock = Clock()
    fabric = Fabric(clock, [link.bytes_per_s] * len(PORTS), PORTS)
    out = PREFILL_OUT if link.same_direction else DECODE_OUT
    begin_s = np.array([0.0, *kv_at_s])
    taken_s = np.zeros(begin_s.size)
    sizes = [link.weight_bytes] + [link.kv_bytes] * len(kv_at_s)

    def send(number: int):
        yield clock.at(float(begin_s[number] - begin_s.min()), _ARRIVES)
        start_s, path = clock.now, (PREFILL_OUT, DECODE_IN) if number else (out, TARGET_IN)
        if sizes[number] > 0:
            yield fabric.start(path, sizes[number], "kv" if number else "weights", (0, 1, 0, "", "")).ended
        taken_s[number] = clock.now - start_s

    for number in range(begin_s.size):
        clock.process(send(number))
    clock.run()
    return Raced(float(taken_s[0]), taken_s[1:])
