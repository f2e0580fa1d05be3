"""Clusters: the papers' test beds, uniform ones from keywords, and where each accelerator sits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError, UnknownName
from workbench.profiles import Cluster, HostGroup, LeafSwitch, Link, accelerator, cluster
from workbench.profiles.naming import names_in


def test_blitzscale_table_1():
    # BlitzScale Table 1: 4 x 8 A800 and 2 x 8 A100; 1.6 Tbps NVLink and 256 Gbps PCIe; 100 Gbps; 128 Gbps; 10 Gbps.
    a, b = cluster("blitzscale-a"), cluster("blitzscale-b")
    assert (a.hosts, a.accelerators, a.accelerator.name) == (4, 32, "a800-80gb-sxm")
    assert (b.hosts, b.accelerators, b.accelerator.name) == (2, 16, "a100-80gb-pcie")
    for one, scale_up in ((a, 1.6e12 / 8), (b, 256e9 / 8)):
        assert float(one.host.scale_up.rate("nominal")) == scale_up
        assert float(one.nic.rate("nominal")) == 100e9 / 8
        assert float(one.host.pcie.rate("nominal")) == 128e9 / 8
        assert float(one.host.pcie_switch.rate("nominal")) == 256e9 / 8
        assert one.host.accelerators_per_pcie_switch == 2
        assert float(one.host.ssd.rate("nominal")) == 10e9 / 8


# BlitzScale Table 2: local SSD, remote SSD, network (Gbps per GPU), NVLink, list price per hour.
@pytest.mark.parametrize(
    ("name", "ssd", "remote", "network", "nvlink", "price"),
    [
        ("a2-ultragpu-8g", 2.58, 0.29, 12.5, True, 40.44),
        ("p4d.24xlarge", 2.31, None, 100, True, 45.039),
        ("ml.hpcpni2.28xlarge", 4, None, 100, False, 48.23),
        ("p4de.24xlarge", 2.31, None, 100, True, 56.328),
        ("a3-highgpu-8g", 6.09, 0.97, 100, True, 88.25),
        ("a3-megagpu-8g", 6.09, 0.97, 200, True, None),
        ("p5.48xlarge", 9.8, None, 400, True, None),
    ],
)
def test_blitzscale_table_2(name, ssd, remote, network, nvlink, price):
    one = cluster(name)
    host = one.host
    assert (one.hosts, host.accelerators) == (1, 8)
    assert float(host.ssd.rate("nominal")) * host.ssds / 8 == pytest.approx(ssd * 1e9 / 8)
    assert float(one.nic.rate("nominal")) * host.nics / 8 == pytest.approx(network * 1e9 / 8)
    assert (host.remote_store is None) == (remote is None)
    if remote is not None:
        assert float(host.remote_store.rate("nominal")) == pytest.approx(remote * 1e9 / 8)
    assert (host.scale_up is not None) is nvlink
    assert one.accelerator.label.startswith(f"NVIDIA {'H100' if name.startswith(('a3', 'p5')) else 'A100'}")
    if price is not None:
        assert float(one.alternate("list-price", "price_per_hour")) == price


def test_lambdascale_testbeds():
    # λScale notes §2.4, §3: 12 x 1 H800, 50 GB/s nominal, fitted 42 GB/s and 6.28 ms; 4 x 4 sharing one card, 16 GB/s.
    one, two = cluster("lambdascale-testbed1"), cluster("lambdascale-testbed2")
    assert (one.hosts, one.accelerators, two.hosts, two.accelerators) == (12, 12, 4, 16)
    assert (float(one.nic.rate("nominal")), float(one.nic.rate())) == (50e9, 42e9)
    assert one.nic.rate().status == "fitted"
    assert (one.nic.latency(), one.nic.latency("nominal")) == (6.28e-3, 0.0)
    assert float(two.nic.rate()) == 16e9
    assert {place.nics for place in two.places[:4]} == {(0,)}
    assert float(one.alternate("raw-nccl", "nic_bytes_per_s")) == pytest.approx(49e9, rel=0.01)


@pytest.mark.parametrize("name", names_in("clusters"))
def test_pcie_lanes_do_not_slow_a_papers_network(name):
    # The networks were measured or published from GPU to GPU, so what is said of loading from host memory must not cut
    # in: a lane carries its accelerator's share of the cards.
    for group in cluster(name).groups:
        if group.nic is not None and group.pcie is not None:
            share = max(1, group.nics / group.accelerators)
            for which in ("nominal", "achievable"):
                assert float(group.pcie.rate(which)) >= share * float(group.nic.rate(which))


def test_lambdascale_loads_from_host_memory():
    # λScale notes §2.9, §3: 26.2 GB/s on one GPU; 54 GB/s over four.
    one, two = cluster("lambdascale-testbed1").host, cluster("lambdascale-testbed2").host
    assert float(one.pcie_switch.rate()) == pytest.approx(1.619e9 / 0.0617, rel=2e-3)
    assert float(two.host_memory.rate()) == pytest.approx(137_953_296_384 / 2.55, rel=2e-3)
    assert float(one.ssd.rate()) == pytest.approx(137_953_296_384 / 30, rel=2e-3)


def test_other_testbeds():
    assert cluster("aegaeon").accelerators == 16
    # Aegaeon A.2: 0.625 of 64 GB/s.
    assert float(cluster("aegaeon-h800").host.pcie.rate()) == 0.625 * 64e9
    assert cluster("aegaeon-a10").accelerators == 4
    assert cluster("aegaeon-production").accelerators == 213
    assert cluster("blendserve-a100").accelerators == 8
    assert float(cluster("serverlessllm-h100").host.ssd.rate()) == 23.7e9
    with pytest.raises(InputError, match="no source states one"):
        _ = cluster("aegaeon").nic


def test_server_chain_clusters_are_heterogeneous():
    bed, simulated = cluster("chains-testbed"), cluster("server-chains-simulation")
    trips = [float(group.round_trip_s) * 1e3 for group in bed.groups]
    assert trips == pytest.approx([20, 35, 45, 55, 70, 80, 90, 100, 120])
    assert [float(group.accelerator.memory_bytes) / 1e9 for group in bed.groups] == [40] * 3 + [20] * 6
    assert (simulated.hosts, [group.hosts for group in simulated.groups]) == (20, [4, 16])
    assert not bed.uniform
    with pytest.raises(InputError, match="unlike hosts"):
        _ = bed.host
    with pytest.raises(InputError, match="2 kinds of accelerators"):
        _ = bed.accelerator
    assert cluster("bprr-testbed-26").accelerators == 26


def test_a_uniform_cluster_from_keywords():
    one = cluster(
        hosts=3, accelerators=8, accelerator="h100-80gb-sxm", nic_bytes_per_s=50e9, nics=4, nic_latency_s=1e-5
    )
    assert (one.hosts, one.accelerators, one.host.nics) == (3, 24, 4)
    assert (float(one.nic.rate()), one.nic.rate().status, one.nic.latency()) == (50e9, "user", 1e-5)
    assert float(one.host.scale_up.rate("nominal")) == 450e9
    assert float(one.host.pcie.rate("nominal")) == 64e9
    one_card_each = cluster(hosts=2, accelerators=8, accelerator="h100", nic_bytes_per_s=5e10)
    assert one_card_each.host.nics == 8
    small = cluster(hosts=1, accelerators=1, accelerator="l40s", ssd_bytes_per_s=7e9, host_memory_bytes=64e9)
    assert (small.host.nic, small.host.scale_up, float(small.host.ssd.rate())) == (None, None, 7e9)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"hosts": 2}, "no accelerators, accelerator"),
        ({"hosts": 0, "accelerators": 8, "accelerator": "h100"}, "field 'hosts'.*greater than or equal to 1"),
        ({"hosts": 2.5, "accelerators": 8, "accelerator": "h100"}, "field 'hosts'.*valid integer"),
        ({"hosts": True, "accelerators": 8, "accelerator": "h100"}, "field 'hosts'.*valid integer"),
        ({"hosts": 2, "accelerators": 8, "accelerator": "h1000"}, "no accelerator named 'h1000'"),
        ({"hosts": 2, "accelerators": 8, "accelerator": "h100", "nic_bytes_per_s": -1}, "nic.nominal_bytes_per_s.*-1"),
        ({"hosts": 2, "accelerators": 8, "accelerator": "h100", "nic_bytes_per_s": float("nan")}, "nan"),
        ({"hosts": 2, "accelerators": 8, "accelerator": "h100", "nic_bytes_per_s": "fast"}, "'fast', not a number"),
        ({"hosts": 2, "accelerators": 8, "accelerator": "h100", "nics": 8}, "nics is 8 but nic is absent"),
        ({"hosts": 2, "accelerators": 8, "accelerator": "h100", "nicks": 8}, "use nics"),
        ({"hosts": 2, "accelerators": 2, "accelerator": "h100", "accelerators_per_pcie_switch": 4}, "lower it"),
    ],
)
def test_bad_keywords_get_one_sentence(keywords, message):
    with pytest.raises((InputError, UnknownName), match=message) as caught:
        cluster(**keywords)
    assert "\n" not in str(caught.value)


def test_a_name_and_keywords_together_are_refused():
    with pytest.raises(InputError, match="either a name or path, or hosts"):
        cluster("blitzscale-a", hosts=3)


def test_more_hosts_of_the_same_kind():
    one = cluster("blitzscale-b")
    assert len(one.places) == 16
    more = one.with_hosts(5)
    assert (more.hosts, len(more.places), more.nic) == (5, 40, one.nic)
    assert [count.status for count in more.host.counts if count.quantity.endswith("hosts")] == ["user"]
    assert one.with_hosts(2) == one
    for wrong in (0, 1.5, True):
        with pytest.raises(InputError, match="1 or more"):
            one.with_hosts(wrong)


def slow_and_fast(leaves: int = 2) -> Cluster:
    """Two leaves, one with a slow host among three."""
    base = cluster(hosts=2, accelerators=4, accelerator="h800", nic_bytes_per_s=50e9, nics=2).groups[0]
    slow = Link(nominal_bytes_per_s=25e9)
    return Cluster(
        name="mixed",
        groups=(
            base.model_copy(update={"leaf": "left"}),
            base.model_copy(update={"leaf": "right", "hosts": 1, "nic": slow}),
            base.model_copy(update={"leaf": "right", "hosts": 1}),
        ),
        leaves=(LeafSwitch(name="left", uplink=slow), LeafSwitch(name="right")),
    )


def test_slow_links_and_leaf_switches_can_be_expressed():
    one = slow_and_fast()
    assert (one.hosts, one.accelerators, one.uniform) == (4, 16, False)
    assert [place.leaf for place in one.places[::4]] == [0, 0, 1, 1]
    assert [place.group for place in one.places[::4]] == [0, 0, 1, 2]
    with pytest.raises(ValueError, match="leaf 'leaf', which is not listed"):
        Cluster(name="x", groups=(cluster("blitzscale-a").host,), leaves=(LeafSwitch(name="other"),))


@given(
    hosts=st.integers(1, 5),
    accelerators=st.integers(1, 9),
    nics=st.integers(0, 12),
    per_switch=st.integers(1, 9),
    ssds=st.integers(1, 9),
)
def test_places_share_resources_evenly(hosts, accelerators, nics, per_switch, ssds):
    one = HostGroup(
        hosts=hosts,
        accelerators=accelerators,
        accelerator=accelerator("h100"),
        nics=nics,
        nic=Link(nominal_bytes_per_s=1e9) if nics else None,
        accelerators_per_pcie_switch=min(per_switch, accelerators),
        ssds=ssds,
        ssd=Link(nominal_bytes_per_s=1e9),
    )
    places = Cluster(name="x", groups=(one, one)).places
    assert [place.accelerator for place in places] == list(range(2 * hosts * accelerators))
    for count, field in ((nics, "nics"), (ssds, "ssds")):
        users: dict[int, int] = {}
        for place in places:
            used = getattr(place, field)
            assert len(used) >= min(1, count)
            for path in used:
                users[path] = users.get(path, 0) + 1
                assert path // count == place.host  # every path belongs to the host that uses it
        assert sorted(users) == list(range(2 * hosts * count))  # every path is used
        if users:
            assert max(users.values()) - min(users.values()) <= 1
    by_switch: dict[int, list] = {}
    for place in places:
        by_switch.setdefault(place.pcie_switch, []).append(place)
    assert all(len({place.host for place in sharing}) == 1 for sharing in by_switch.values())
    assert max(map(len, by_switch.values())) <= one.accelerators_per_pcie_switch
