"""One seed, one independent stream of random numbers for each thing that is drawn."""

from numbers import Integral
from typing import Literal

import numpy as np

from workbench.errors import InputError
from workbench.records import shown

Stream = Literal["arrivals", "lengths", "prefixes", "choice", "dispatch"]
_PLACES: dict[Stream, int] = {"arrivals": 0, "lengths": 1, "prefixes": 2, "choice": 3, "dispatch": 4}

Seed = int | np.random.SeedSequence


def stream(seed: Seed, name: Stream, *part: int) -> np.random.Generator:
    """The generator of one stream; the same whatever else is drawn, and in whatever order.

    Parameters:
        seed: of the run.
        name: what is drawn.
        part: which model, replication or candidate.

    Raises:
        InputError: for a seed that is neither a whole number of 0 or more nor a SeedSequence.
    """
    root = root_of(seed)
    key = (*root.spawn_key, _PLACES[name], *part)
    return np.random.default_rng(np.random.SeedSequence(root.entropy, spawn_key=key))


def root_of(seed: Seed) -> np.random.SeedSequence:
    """The seed sequence that a seed stands for; whole numbers may be as large as 128-bit entropy is."""
    if isinstance(seed, np.random.SeedSequence):
        return seed
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"is {shown(seed)}", "give a whole number of 0 or more, or a SeedSequence", field="seed")
    return np.random.SeedSequence(int(seed))
