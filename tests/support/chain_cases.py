"""Fleets, jobs and systems of chains that several tests use."""

import numpy as np
from hypothesis import strategies as st

from workbench.chains import Fleet

FIVE = Fleet(
    memory_bytes=[20, 30, 20, 20, 20],
    communication_s=[1, 2, 1, 1, 1],
    compute_s=[0.001, 0.002, 0.003, 0.004, 0.005],
    layers=3,
    block_bytes=10,
    cache_bytes=1,
)
"""The example of the paper's summary, §3.1.4: bytes in tenths of a GB, eps = 0.001 s."""


def random_fleet(rng: np.random.Generator, servers: int, layers: int, memories=None, block=10, cache=1) -> Fleet:
    """Servers with random times and memories (any from one block to all of them and some cache)."""
    memory = rng.choice(memories, servers) if memories is not None else rng.integers(block, block * layers * 2, servers)
    return Fleet(
        memory_bytes=memory,
        communication_s=rng.uniform(0.1, 2.0, servers),
        compute_s=rng.uniform(0.01, 1.0, servers),
        layers=layers,
        block_bytes=block,
        cache_bytes=cache,
    )


@st.composite
def fleets(draw, most_servers=7, most_layers=6):
    """Small fleets with any memories, some servers too small for a block."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    servers, layers = draw(st.integers(1, most_servers)), draw(st.integers(1, most_layers))
    return Fleet(
        memory_bytes=rng.integers(0, 14 * layers, servers),
        communication_s=rng.integers(0, 4, servers) + 0.5,
        compute_s=rng.integers(0, 4, servers).astype(float),
        layers=layers,
        block_bytes=10,
        cache_bytes=draw(st.integers(1, 3)),
    )
