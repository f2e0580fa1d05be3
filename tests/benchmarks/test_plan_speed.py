"""Prints how fast BlitzScale's planners decide; run with `pytest -s tests/benchmarks`."""

import statistics
import time

import pytest

from workbench.scaling.policy.chain_plan import Holder, Spare, plan_chains

GBPS = 1e9 / 8
HOSTS, ACCELERATORS, LEAVES = 128, 8, 16


@pytest.mark.parametrize("sources", [1, 64])
def test_plan_for_1024_accelerators(sources, budget):
    """Budget: 50 ms of processor time."""
    holders = [Holder(name=f"d{i}", role="decode", leaf=i % LEAVES, bytes_per_s=100 * GBPS) for i in range(sources)]
    spares = [
        Spare(
            name=f"g{i}",
            domain=i // ACCELERATORS,
            leaf=i // ACCELERATORS % LEAVES,
            bytes_per_s=(200 if i % 3 == 0 else 100) * GBPS,
        )
        for i in range(HOSTS * ACCELERATORS)
    ]
    taken = []
    for _ in range(9):
        start = time.process_time()
        chains = plan_chains(holders, spares, len(spares))
        taken.append(time.process_time() - start)
    assert sum(len(node.members) for chain in chains for node in chain.nodes) == len(spares)
    budget("plan", statistics.median(taken), f"{sources} source{'s' if sources > 1 else ''}")
