"""Links that fail, and weights that are looked for where they are no more: by hand, and whatever happens."""

from collections import Counter
from math import inf, nan

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scaled_role_cases import with_scaled_roles
from scaling_cases import growing, row, scaled_scenario
from sent_weights_cases import chain_scenario, with_chains, with_live
from serving_cases import asked, migrating, place, scenario, with_roles
from serving_invariants import everybody_is_somewhere, rates_are_fair
from serving_outcomes import differences

from workbench.errors import InputError
from workbench.serving import Group, LinkFailure, Network, Scenario, StepForm, serve
from workbench.serving.model import Outages, Outcome, Updates, run_compiled
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import COLOCATED, DECODE, INSIDE, PREFILL, Lowered
from workbench.serving.model.scaled import EMPTY, UP
from workbench.serving.policy.scalers import CHAINS, NONE, SSD_TIER, TIERS
from workbench.serving.simulated.chains import Chains
from workbench.serving.simulated.links import Links
from workbench.serving.simulated.run import Cluster, simulate
from workbench.serving.simulated.weights import Weights

ENGINES = pytest.mark.parametrize("engine", [run_compiled, simulate])
NEVER = np.empty(0)


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def broken(base: Lowered, *outages) -> Lowered:
    """The same with failures of links, rows (time, port, back)."""
    time_s, port, back_s = zip(*outages, strict=True)
    return base._replace(outages=Outages(np.array(time_s, float), np.array(port), np.array(back_s, float)))


PAIR = migrating([asked(0, 8, 2)], [place(role=PREFILL), place(role=DECODE)])


@ENGINES
@pytest.mark.parametrize(("port", "end_s"), [(0, 5), (3, 5), (1, 3), (2, 3)])
def test_kv_stands_still_while_a_link_of_its_way_is_down(engine, port, end_s):
    """Eight bytes at four a second from 1 s on; out of the first or into the second, nothing goes from 2 s to 4 s."""
    out = engine(checked(broken(PAIR, (2.0, port, 4.0))))
    same(out.flows[:, :2], [[1, end_s]])
    same(out.finish_s, [end_s + 1])


@ENGINES
def test_a_link_that_is_down_at_the_start_and_again(engine):
    out = engine(checked(broken(PAIR, (0.5, 0, 1.5), (1.5, 0, 2.0), (3.0, 0, 3.5))))
    same(out.flows[:, :2], [[1, 4.5]])


@ENGINES
@pytest.mark.parametrize(("fail_s", "back_s", "end_s"), [(0.5, 1.25, 2), (0.5, 2.5, 2.5), (1.5, 1.75, 2), (1.5, 3, 3)])
def test_over_links_without_bounds_all_comes_when_they_are_back(engine, fail_s, back_s, end_s):
    """From 1 s on, with a second of latency."""
    base = migrating([asked(0, 8, 2)], [place(role=PREFILL), place(role=DECODE)], egress=inf, ingress=inf, latency_s=1)
    out = engine(checked(broken(base, (fail_s, 0, back_s))))
    same(out.flows[:, :2], [[1, end_s]])
    same(out.finish_s, [end_s + 1])


@ENGINES
def test_others_go_faster_while_one_stands_still(engine):
    """Two of eight bytes out of one link from 1 s on, two a second each. Into the third instance nothing goes from 2 s
    to 3 s, when the other one gets four: both have six left at 2 s, and that one two at 3 s."""
    places = [place(role=PREFILL), place(role=DECODE, limit=1), place(role=DECODE, limit=1)]
    base = migrating([asked(0, 8, 2), asked(0, 8, 2)], places)
    out = engine(checked(broken(base, (2.0, 3 + 2, 3.0))))
    same(out.flows[:, 1], [4, 5])


def chained(engine, *outages, reroute=1, **changes):
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
    return engine(checked(broken(lowered._replace(scaling=scaling), *outages)))


@ENGINES
@pytest.mark.parametrize(("reroute", "loads"), [(0, [[1, 13, 2]]), (1, [[1, nan, 2], [2, 6, 2]])])
def test_weights_come_from_another_source_where_that_is_wanted(engine, reroute, loads):
    """Sixteen bytes of which four are sent when the way out of the first place fails, from 2 s to 10 s."""
    out = chained(engine, (2.0, 0, 10.0), reroute=reroute)
    same(out.loads[:, :3], loads)
    assert out.chains[-1, 4] == (1 if reroute else 0)


@ENGINES
def test_where_there_is_no_other_source_the_same_one_sends_when_it_can(engine):
    """Both ways out are down: the load begins again, twice, and ends 4 s after the first way is back."""
    out = chained(engine, (2.0, 0, 8.0), (2.5, 1, 9.0))
    same(out.loads[:, :2], [[1, nan], [2, nan], [2.5, 12]])


@ENGINES
def test_tails_help_while_their_weights_stand_still(engine):
    """Three of sixteen bytes, of eight layers one, are there at 4 s, when the way out fails for four seconds. A step of
    four seconds takes 7/8 of that; the third prompt has nobody behind it."""
    rows = [row(k, 0, state, slots=1, form=((4.0, 0, 0, 0, 0), (0.0,) * 5)) for k, state in enumerate((UP, EMPTY))]
    live = {"live": 2, "layers": 8, "bytes": 16.0, "egress": 1.0, "ingress": 1.0, "control_s": 0.0}
    lowered = growing([asked(0, 8, 1)] * 3, rows, kind=NONE, min_rows=2, source=CHAINS, **live)
    out = engine(checked(broken(lowered, (4.0, 0, 8.0))))
    same(out.assists, [[4, 7.5, 1, 0, 1, 1]])
    same(out.finish_s, [4, 7.5, 11.5])
    same(out.loads[:, :2], [[1, 21]])


@ENGINES
def test_links_of_a_run_say_when_nothing_went(engine):
    groups = tuple(
        Group(model="a", step=StepForm(compute=(1.0, 0, 0, 0, 0)), kv_tokens=4096, role=role, kv_bytes_per_token=1.0)
        for role in ("prefill", "decode")
    )
    table = pl.DataFrame({"model": ["a"], "arrival_s": [10.0], "prompt_tokens": [8], "output_tokens": [2]})
    failure = LinkFailure(time_s=2, back_s=4, instance=1, way="in")
    links = Network(egress_bytes_per_s=4.0, ingress_bytes_per_s=4.0)
    run = serve(Scenario(groups=groups, network=links, link_failures=(failure,)), table, backend=engine)
    one = run.links.filter(pl.col("link") == "egress of instance 0")
    assert one.select("start_s", "end_s", "bytes_per_s").rows() == [(11, 12, 4), (14, 15, 4)]


@ENGINES
@pytest.mark.parametrize(
    ("stale_s", "detect_s", "up_s"), [(0.0, 0.5, 4.5), (9.0, 0.5, 5.0), (0.4, 0.5, 4.5), (0.6, 0.0, 4.5)]
)
def test_weights_that_have_left_are_looked_for_while_it_is_not_known(engine, stale_s, detect_s, up_s):
    """A new version at 1.5 s takes them from memory; that of 2 s has read them by 4 s, or looks first."""
    given = growing([asked(1.25, 4, 1)], [row(0)], kind=1, source=TIERS, cached=[[1]])
    scaling = given.scaling._replace(stale_s=stale_s, detect_s=detect_s)
    out = engine(checked(given._replace(scaling=scaling, updates=Updates(np.array([1.5]), np.array([0])))))
    same(out.loads[:, :4], [[2, up_s, 0, SSD_TIER]])


def with_outages(rng: np.random.Generator, base: Lowered, share=0.6, moments=NEVER) -> Lowered:
    """The same whose links, if it has any, fail now and then, half of the times at given moments.

    Or else at quarters of seconds where all times lie there.
    """
    if base.network is None:
        return base
    grid = bool((4 * base.requests.arrival_s % 1 == 0).all())
    rows = np.arange(len(base.instances.model)) if base.scaling is None else base.scaling.place
    hosts = 0 if base.scaling is None else len(base.scaling.cache_bytes)
    ports, end_s, found = 2 * (1 + int(rows.max())) + hosts, float(base.requests.arrival_s[-1]) + 4, []
    for port in range(ports):
        time_s = 0.0
        while rng.random() < share:
            later_s, down_s = rng.random() * end_s, float(rng.choice([0.25, 1.0, 3.0]))
            time_s += float(np.floor(4 * later_s) / 4) if grid else later_s
            if (moments >= time_s).any() and rng.random() < 0.5:
                time_s = float(moments[moments >= time_s].min())
            if time_s >= end_s:
                break
            found.append((time_s, port, time_s + (down_s if grid else down_s * rng.random())))
            time_s = found[-1][2]
    if base.scaling is not None:
        more = {"reroute": rng.integers(0, 2, len(base.scaling.kind)), "stale_s": 1.0, "detect_s": 0.25}
        base = base._replace(scaling=base.scaling._replace(**more))
    return broken(base, *sorted(found)) if found else base


def any_cluster(seed: int) -> Lowered:
    """With roles, or with weights over links."""
    rng = np.random.default_rng(seed)
    return with_outages(rng, chain_scenario(rng) if seed % 2 else with_roles(rng, scenario(rng, 30)))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1).map(any_cluster))
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


def large_cluster(seed: int) -> Lowered:
    """In turn with roles, with weights over links, with tails that help, and with groups that scale by role.

    Links of half of them fail when transfers begin or end without failures.
    """
    rng = np.random.default_rng([seed, 17])
    base = (
        lambda: with_roles(rng, scenario(rng, 60)),
        lambda: chain_scenario(rng, 60),
        lambda: with_live(rng),
        lambda: with_chains(rng, with_scaled_roles(rng, scaled_scenario(rng, 60))),
    )[seed % 4]()
    calm = run_compiled(base) if seed % 8 < 4 else None
    return with_outages(rng, base, 0.8, NEVER if calm is None else np.vstack([calm.flows, calm.chains])[:, :2].ravel())


def occurrences(lowered: Lowered, run: Outcome) -> Counter:
    """How often what may go apart came up in a run."""
    seen, (fail_s, _, back_s) = Counter(), lowered.outages
    of_roles = (lowered.instances.role != COLOCATED).any()
    for name, sent in (("KV", run.flows), ("weights", run.chains)):
        ended = sent[~np.isnan(sent[:, 1])]
        seen[f"{name} sent"] += len(sent)
        seen[f"{name} sent in clusters with roles"] += len(sent) if of_roles else 0
        seen[f"{name} there when a link is back"] += np.isin(ended[:, 1], back_s).sum()
        seen[f"{name} there when a link fails"] += np.isin(ended[:, 1], fail_s).sum()
        seen[f"{name} begun when a link fails"] += np.isin(sent[:, 0], fail_s).sum()
    seen["failures at ticks"] += np.isin(fail_s, run.ticks[:, 0]).sum()
    seen["failures at ends of steps"] += np.isin(fail_s, run.iteration_end_s).sum()
    seen["several failures at an instant"] += fail_s.size - np.unique(fail_s).size
    seen["back and failed at an instant"] += np.isin(back_s, fail_s).sum()
    return seen


def test_clusters_whose_links_fail_end_the_same(monkeypatch):
    """Compiled and SimPy engine give the same bits; every fifth run is made step by step."""
    seen, change = Counter(), Links._change
    lose_ports, senders, begin_again = Chains.lose_ports, Chains._senders, Weights.begin_again

    def counted_change(self, ports, rates):
        change(self, ports, rates)
        for flow in self.flows:
            if flow.rate == 0 and set(flow.ports) & set(ports):
                seen["weights stand still" if flow.ended.__qualname__.startswith("Chains") else "KV stands still"] += 1

    def counted_ports(self, ports):
        before = seen["begun again"]
        lose_ports(self, ports)
        seen["begun again for links"] += seen["begun again"] - before

    def counted_again(self, operation):
        seen["begun again"] += 1
        begin_again(self, operation)

    def counted_senders(self, group, rows):
        found = senders(self, group, rows)
        broken_ones = [row for row in self.fleet.readable(rows[0].model) if row not in found] if rows else []
        seen["senders left out"] += sum(not self.links.capacity[row.index] for row in broken_ones)
        return found

    monkeypatch.setattr(Links, "_change", counted_change)
    monkeypatch.setattr(Chains, "lose_ports", counted_ports)
    monkeypatch.setattr(Chains, "_senders", counted_senders)
    monkeypatch.setattr(Weights, "begin_again", counted_again)
    for seed in range(300):
        lowered = checked(large_cluster(seed))
        run = simulate(lowered)
        assert differences(run_compiled(lowered, jumps=seed % 5 > 0), run) == [], f"seed {seed}"
        seen += occurrences(lowered, run)
    rare = {name: count for name, count in seen.items() if count < 5}
    assert not rare, seen


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
    with pytest.raises(InputError, match="names an instance and a host, or neither; name one of them"):
        LinkFailure(time_s=1, back_s=2)
