"""Weights that pass through tiers chunk by chunk: a SimPy process a leg, each with a hand-over to the next."""

from collections.abc import Sequence

import simpy

from workbench.caching.model.loading import Tier


def simulate_loading(weight_bytes: float, tiers: Sequence[Tier], chunk_bytes: float | None = None) -> float:
    """The seconds of `load_seconds`, by simulation; the last chunk may be smaller than the others."""
    chunk = weight_bytes if chunk_bytes is None else min(chunk_bytes, weight_bytes)
    whole = int(weight_bytes // chunk)
    rest = weight_bytes - whole * chunk
    chunks = [chunk] * whole + ([rest] if rest > 0 else [])
    clock = simpy.Environment()
    shelves = [simpy.Store(clock) for _ in tiers]

    def leg(place: int):
        for _ in chunks:
            size = yield shelves[place].get()
            yield clock.timeout(size / tiers[place].bytes_per_s)
            if place + 1 < len(tiers):
                yield shelves[place + 1].put(size)

    for size in chunks:
        shelves[0].put(size)
    for place in range(len(tiers)):
        last = clock.process(leg(place))
    clock.run(last)
    return clock.now
