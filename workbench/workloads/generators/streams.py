"""One seed, one independent stream of random numbers for each thing that is drawn."""

from typing import Literal

import numpy as np

Stream = Literal["arrivals", "lengths", "prefixes", "choice"]
_PLACES: dict[Stream, int] = {"arrivals": 0, "lengths": 1, "prefixes": 2, "choice": 3}

Seed = int | np.random.SeedSequence


def stream(seed: Seed, name: Stream, *part: int) -> np.random.Generator:
    """The generator of one stream; the same whatever else is drawn, and in whatever order.

    Parameters:
        seed: of the run.
        name: what is drawn.
        part: which model, replication or candidate.
    """
    root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    key = (*root.spawn_key, _PLACES[name], *part)
    return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=key))
