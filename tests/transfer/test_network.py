"""Paths and resources of networks built from numbers and from cluster profiles."""

import numpy as np
import pytest

from workbench.errors import InputError, UserError
from workbench.profiles import cluster
from workbench.transfer.model import network_of, uniform_network
from workbench.transfer.policy import chain


def names(network, source, target):
    return [network.resources[index].name for index in network.path(source, target)]


def test_equal_nodes_share_nothing_but_their_own_ports():
    network = uniform_network(3, 12.5e9, 1e-5)
    assert names(network, 0, 2) == ["nic 0 out", "nic 2 in"]
    assert network.alone_bytes_per_s(0, 2) == 12.5e9
    assert network.overhead_s(0, 2) == 1e-5
    assert not set(network.path(0, 1)) & set(network.path(1, 0))  # each direction by itself
    assert network.table().columns == ["name", "kind", "bytes_per_s"]
    assert network.table().height == 6


def test_unequal_nodes_and_slow_links():
    network = uniform_network(3, 12.5e9, node_bytes_per_s={2: 25e9}, slow_links={(1, 2): 1e9})
    assert network.alone_bytes_per_s(0, 2) == 12.5e9
    assert network.alone_bytes_per_s(1, 2) == 1e9
    assert network.alone_bytes_per_s(2, 1) == 12.5e9
    seconds = network.transfer_seconds(chain(3, 2), np.array([1e9, 2e9]))
    assert seconds.tolist() == pytest.approx([0.08, 0.16, 1.0, 2.0])


def test_accelerators_of_a_host_share_a_nic_and_hosts_an_uplink():
    network = uniform_network(
        8, 50e9, 1e-5, accelerators_per_host=2, accelerators_per_nic=2, local_bytes_per_s=200e9, local_alpha_s=2e-6,
        hosts_per_leaf=2, uplink_bytes_per_s=60e9,
    )  # fmt: skip
    assert names(network, 0, 1) == ["accelerator 0 out", "accelerator 1 in"]
    assert network.overhead_s(0, 1) == 2e-6
    assert names(network, 0, 2) == ["nic 0.0 out", "nic 1.0 in"]
    assert names(network, 1, 6) == ["nic 0.0 out", "leaf 0 out", "leaf 1 in", "nic 3.0 in"]
    assert network.ports(chain(4, 1)).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"nodes": 5, "accelerators_per_host": 2, "local_bytes_per_s": 1e9}, "do not fill hosts of 2"),
        ({"nodes": 4, "accelerators_per_host": 2}, "local_bytes_per_s"),
        ({"nodes": 4, "accelerators_per_host": 4, "accelerators_per_nic": 3, "local_bytes_per_s": 1e9}, "divide 4"),
        ({"nodes": 4, "slow_links": {(0, 4): 1e9}}, "no node 4"),
        ({"nodes": 4, "node_bytes_per_s": {-1: 1e9}}, "no node -1"),
        ({"nodes": 4, "hosts_per_leaf": 0}, "hosts_per_leaf.*1 or more"),
        (
            {
                "nodes": 4,
                "accelerators_per_host": 2,
                "accelerators_per_nic": 2,
                "local_bytes_per_s": 1e9,
                "node_bytes_per_s": {1: 1e9},
            },
            "a NIC per node",
        ),
    ],
)
def test_numbers_that_do_not_fit_together(arguments, problem):
    with pytest.raises(UserError, match=problem):
        uniform_network(bytes_per_s=1e9, **arguments)


def test_a_bandwidth_of_nothing_is_refused():
    with pytest.raises(InputError, match="bytes_per_s"):
        uniform_network(2, 0.0)


def test_blitzscale_a_by_accelerator():
    """BlitzScale Table 1: 128 Gbps host to GPU, 100 Gbps per NIC, 1.6 Tbps inside the host; nominal, no overhead."""
    network = network_of(cluster("blitzscale-a"), ["memory 0", 0, 1, 8], achievable=False)
    assert network.nodes == 4
    assert network.alone_bytes_per_s(1, 2) == pytest.approx(200e9)
    assert network.alone_bytes_per_s(1, 3) == pytest.approx(12.5e9)
    assert network.alone_bytes_per_s(0, 1) == pytest.approx(16e9)
    assert names(network, 0, 1) == ["pcie switch 0 in", "accelerator 0 pcie in"]
    assert names(network, 1, 0) == ["accelerator 0 pcie out", "pcie switch 0 out"]
    assert names(network, 1, 3) == [
        "accelerator 0 pcie out", "nic 0 out", "nic 8 in", "accelerator 8 pcie in",
    ]  # fmt: skip
    assert network.alpha_s == 0.0
    assert set(network.path(0, 1)) & set(network.path(3, 1)) == set(network.path(0, 1)) - {network.path(0, 1)[0]}


def test_a_slow_copy_rate_does_not_hold_up_rdma():
    """λScale testbed 1: the NIC got 42 GB/s through lanes over which one GPU copied 26.2 GB/s from host memory."""
    network = network_of(cluster("lambdascale-testbed1"), [0, 1, "memory 0"])
    assert network.alone_bytes_per_s(0, 1) == pytest.approx(42e9)
    assert network.alone_bytes_per_s(2, 0) == pytest.approx(26.2e9)
    assert network.alpha_s == pytest.approx(6.28e-3)


def test_accelerators_of_a_host_may_share_one_nic():
    network = network_of(cluster("lambdascale-testbed2"))
    assert network.nodes == 16
    assert set(network.path(0, 4)) & set(network.path(1, 5))
    assert not set(network.path(0, 4)) & set(network.path(4, 8))


def test_hosts_as_nodes_use_all_their_nics():
    network = network_of(cluster("blitzscale-a"), 2, per="host", achievable=False)
    assert network.alone_bytes_per_s(0, 1) == pytest.approx(8 * 12.5e9)


def test_unknown_nodes_and_missing_networks_are_refused():
    with pytest.raises(UserError, match="0 to 31"):
        network_of(cluster("blitzscale-a"), [0, 32])
    with pytest.raises(UserError, match="memory 9"):
        network_of(cluster("blitzscale-a"), ["memory 9"])
    with pytest.raises(InputError, match="no network card"):
        network_of(cluster("aegaeon-h800"))
    assert network_of(cluster("aegaeon-h800"), 8).nodes == 8


def test_a_schedule_needs_enough_nodes():
    with pytest.raises(UserError, match="5 nodes but the network only 3"):
        uniform_network(3, 1e9).transfer_seconds(chain(5, 2), 1e6)
