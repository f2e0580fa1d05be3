"""Fleets, jobs and systems of chains that several tests use."""

import numpy as np
from hypothesis import strategies as st

from workbench.chains import Fleet, JobList, TokenTimes, compose

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


def real_servers(reserved: int = 6, trips_s=(0.008, 0.010, 0.008, 0.012), tokens=(8, 8)):
    """Four servers of twelve blocks whose chains share servers, with seconds for tokens.

    Reserving for 6 jobs (16 bytes a block) the servers host 6, 6, 4 and 4 blocks and have 38, 51, 26 and 26 slots, so
    by hand: j1 - j2 holds 6 jobs (36 of 38 slots of j1), then j3 - j1 - j2 one (4 + 2 + 6; j1 is full, 9 slots of j2
    are left), then j3 - j4 - j2 two (4 slots each; one of j2 is left).
    """
    times = TokenTimes(
        np.array([[trip, 0.0, trip] for trip in trips_s]), np.array([[0, 0.0005, 0.003]] * 2 + [[0, 0.0005, 0.004]] * 2)
    )
    usual = [1.0, tokens[0], tokens[1] - 1]
    each = 10 + reserved
    fleet = Fleet(
        memory_bytes=[6 * each + 2, 6 * each + 15, 4 * each + 2, 4 * each + 2],
        communication_s=times.communication_s @ usual,
        compute_s=times.compute_s @ usual,
        layers=12,
        block_bytes=10,
        cache_bytes=1,
    )
    return compose(fleet, reserved), times


def token_jobs(arrival_s, prompt=8, output=8) -> JobList:
    """Jobs of equal tokens."""
    count = len(arrival_s)
    work = np.tile([1.0, prompt, output - 1.0], (count, 1))
    return JobList(np.asarray(arrival_s, dtype=float), work, np.random.default_rng(0).random((count, 2)))
