"""Links that fail, and weights that are looked for where they are no more: by hand, and whatever happens."""

from math import inf, nan

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_cases import growing, row
from sent_weights_cases import chain_scenario
from serving_cases import asked, migrating, place, scenario, with_roles
from serving_invariants import everybody_is_somewhere, rates_are_fair

from workbench.errors import InputError, UserError
from workbench.serving import Group, LinkFailure, Network, Scenario, StepForm, serve
from workbench.serving.model import Outages, Updates, run_compiled
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import DECODE, INSIDE, PREFILL, Lowered
from workbench.serving.model.scaled import EMPTY, UP
from workbench.serving.policy.scalers import CHAINS, NONE, SSD_TIER, TIERS
from workbench.serving.simulated.run import Cluster, simulate


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def broken(base: Lowered, *outages) -> Lowered:
    """The same with failures of links, rows (time, port, back)."""
    time_s, port, back_s = zip(*outages, strict=True)
    return base._replace(outages=Outages(np.array(time_s, float), np.array(port), np.array(back_s, float)))


PAIR = migrating([asked(0, 8, 2)], [place(role=PREFILL), place(role=DECODE)])


@pytest.mark.parametrize(("port", "end_s"), [(0, 5), (3, 5), (1, 3), (2, 3)])
def test_kv_stands_still_while_a_link_of_its_way_is_down(port, end_s):
    """Eight bytes at four a second from 1 s on; out of the first or into the second, nothing goes from 2 s to 4 s."""
    out = simulate(checked(broken(PAIR, (2.0, port, 4.0))))
    same(out.flows[:, :2], [[1, end_s]])
    same(out.finish_s, [end_s + 1])


def test_a_link_that_is_down_at_the_start_and_again():
    out = simulate(checked(broken(PAIR, (0.5, 0, 1.5), (1.5, 0, 2.0), (3.0, 0, 3.5))))
    same(out.flows[:, :2], [[1, 4.5]])


def test_others_go_faster_while_one_stands_still():
    """Two of eight bytes out of one link from 1 s on, two a second each. Into the third instance nothing goes from 2 s
    to 3 s, when the other one gets four: both have six left at 2 s, and that one two at 3 s."""
    places = [place(role=PREFILL), place(role=DECODE, limit=1), place(role=DECODE, limit=1)]
    base = migrating([asked(0, 8, 2), asked(0, 8, 2)], places)
    out = simulate(checked(broken(base, (2.0, 3 + 2, 3.0))))
    same(out.flows[:, 1], [4, 5])


def chained(*outages, reroute=1, **changes):
    rows = [row(k, k % 2, UP if k < 2 else EMPTY) for k in range(3)]
    usual = {
        "kind": NONE,
        "min_rows": 3,
        "source": CHAINS,
        "control_s": 0.0,
        "egress": 4.0,
        "ingress": 4.0,
        "bytes": 16.0,
    }
    lowered = growing([asked(0, 4, 20)], rows, **usual | changes)
    scaling = lowered.scaling._replace(reroute=np.array([reroute]))
    return simulate(checked(broken(lowered._replace(scaling=scaling), *outages)))


@pytest.mark.parametrize(("reroute", "loads"), [(0, [[1, 13, 2]]), (1, [[1, nan, 2], [2, 6, 2]])])
def test_weights_come_from_another_source_where_that_is_wanted(reroute, loads):
    """Sixteen bytes of which four are sent when the way out of the first place fails, from 2 s to 10 s."""
    out = chained((2.0, 0, 10.0), reroute=reroute)
    same(out.loads[:, :3], loads)
    assert out.chains[-1, 4] == (1 if reroute else 0)


def test_where_there_is_no_other_source_the_same_one_sends_when_it_can():
    """Both ways out are down: the load begins again, twice, and ends 4 s after the first way is back."""
    out = chained((2.0, 0, 8.0), (2.5, 1, 9.0))
    same(out.loads[:, :2], [[1, nan], [2, nan], [2.5, 12]])


def test_links_of_a_run_say_when_nothing_went():
    groups = tuple(
        Group(model="a", step=StepForm(compute=(1.0, 0, 0, 0, 0)), kv_tokens=4096, role=role, kv_bytes_per_token=1.0)
        for role in ("prefill", "decode")
    )
    table = pl.DataFrame({"model": ["a"], "arrival_s": [10.0], "prompt_tokens": [8], "output_tokens": [2]})
    failure = LinkFailure(time_s=2, back_s=4, instance=1, way="in")
    links = Network(egress_bytes_per_s=4.0, ingress_bytes_per_s=4.0)
    run = serve(Scenario(groups=groups, network=links, link_failures=(failure,)), table, backend=simulate)
    one = run.links.filter(pl.col("link") == "egress of instance 0")
    assert one.select("start_s", "end_s", "bytes_per_s").rows() == [(11, 12, 4), (14, 15, 4)]


@pytest.mark.parametrize(
    ("stale_s", "detect_s", "up_s"), [(0.0, 0.5, 4.5), (9.0, 0.5, 5.0), (0.4, 0.5, 4.5), (0.6, 0.0, 4.5)]
)
def test_weights_that_have_left_are_looked_for_while_it_is_not_known(stale_s, detect_s, up_s):
    """A new version at 1.5 s takes them from memory; that of 2 s has read them by 4 s, or looks first."""
    given = growing([asked(1.25, 4, 1)], [row(0)], kind=1, source=TIERS, cached=[[1]])
    scaling = given.scaling._replace(stale_s=stale_s, detect_s=detect_s)
    out = simulate(checked(given._replace(scaling=scaling, updates=Updates(np.array([1.5]), np.array([0])))))
    same(out.loads[:, :4], [[2, up_s, 0, SSD_TIER]])


def with_outages(seed):
    """Any cluster with links, of which some fail, now and then."""
    rng = np.random.default_rng(seed)
    base = chain_scenario(rng) if seed % 2 else with_roles(rng, scenario(rng, 30))
    if base.network is None:
        return base
    rows = np.arange(len(base.instances.model)) if base.scaling is None else base.scaling.place
    hosts = 0 if base.scaling is None else len(base.scaling.cache_bytes)
    ports, end_s, found = 2 * (1 + int(rows.max())) + hosts, float(base.requests.arrival_s[-1]) + 4, []
    for port in range(ports):
        time_s = 0.0
        while rng.random() < 0.6 and (time_s := time_s + float(np.floor(4 * rng.random() * end_s) / 4)) < end_s:
            found.append((time_s, port, time_s + float(rng.choice([0.25, 1.0, 3.0]))))
            time_s = found[-1][2]
    if base.scaling is not None:
        more = {"reroute": rng.integers(0, 2, len(base.scaling.kind)), "stale_s": 1.0, "detect_s": 0.25}
        base = base._replace(scaling=base.scaling._replace(**more))
    return broken(base, *sorted(found)) if found else base


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1).map(with_outages))
def test_nothing_goes_over_a_link_that_is_down_and_nothing_is_lost(lowered):
    cluster = Cluster(checked(lowered))
    clock, links = cluster.clock, cluster.links
    while clock.peek() <= min(lowered.until_s, np.finfo(float).max):
        clock.step()
        everybody_is_somewhere(cluster)
        if links:
            rates_are_fair(links.flows, links.capacity)
            down = {port for port, rate in enumerate(links.capacity) if not rate}
            assert all(flow.rate == 0 for flow in links.flows if down & {*flow.ports})
    run = cluster.outcome()
    forever = (lowered.failures.back_s == inf).any()
    if lowered.scaling is None and lowered.until_s == inf and not forever:
        assert (run.status != INSIDE).all()


@pytest.mark.parametrize(("outages", "sentence"), [
    ([(1.0, 4, 2.0)], "row 1, field 'port': .* name one of the 4 ports"),
    ([(1.0, 0, inf)], "row 1, field 'back_s': .* say when a link is back"),
    ([(1.0, 0, 1.0)], "row 1, field 'back_s': .* let it come back after it failed"),
    ([(1.0, 0, 3.0), (2.0, 0, 4.0)], "row 2, field 'time_s': falls on a link that is down"),
])  # fmt: skip
def test_failures_that_make_no_sense(outages, sentence):
    with pytest.raises(InputError, match=sentence):
        checked(broken(PAIR, *outages))


def test_where_they_cannot_be():
    plain = PAIR._replace(network=None, instances=PAIR.instances._replace(role=np.zeros(2, int)))
    with pytest.raises(InputError, match="has failures of links, but no network; give one, or leave them out"):
        checked(broken(plain, (1.0, 0, 2.0)))
    with pytest.raises(UserError, match="does not know failures of links yet; run it on SimPy"):
        run_compiled(broken(PAIR, (1.0, 0, 2.0)))
    with pytest.raises(InputError, match="names an instance and a host, or neither; name one of them"):
        LinkFailure(time_s=1, back_s=2)
