"""Prints how fast the transfer kernels and the simulation are; run with `pytest -s tests/benchmarks`."""

import pytest
from timing import median_s

from workbench.transfer.model import arrival_steps, uniform_network
from workbench.transfer.policy import make_schedule
from workbench.transfer.simulated import simulate


@pytest.mark.parametrize("nodes", [1023, 1024])
def test_closed_form_of_1024_blocks(nodes, budget):
    """Budget: 50 ms for 1,024 blocks to 1,024 nodes."""
    seconds = median_s(lambda: arrival_steps("binomial_pipeline", nodes, 1024))
    budget("multicast", seconds, f"{nodes:,} nodes")


def test_simulated_transfers_per_second():
    """No budget; unequal NICs and shared uplinks, so that hardly two transfers end together."""
    speeds = {node: 1e9 * (0.5 + node / 32) for node in range(32)}
    network = uniform_network(32, 1e9, 1e-3, node_bytes_per_s=speeds, hosts_per_leaf=8, uplink_bytes_per_s=3e9)
    schedule = make_schedule("binomial_pipeline", 32, 32)
    seconds = median_s(lambda: simulate(schedule, network, 1e6), repeats=3)
    print(f"\n{len(schedule.step) / seconds:,.0f} simulated transfers/s among 32 nodes")
