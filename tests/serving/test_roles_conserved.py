"""Whatever happens to KV caches on their way, nothing is lost or held twice, and links are shared fairly."""

from math import inf, isfinite

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from serving_cases import scenario, small_role_scenarios, with_prefixes, with_ranks, with_roles

from workbench.serving.model.lowered import DONE, INSIDE, REJECTED
from workbench.serving.simulated.decoder import Decoder
from workbench.serving.simulated.links import Flow, share_out
from workbench.serving.simulated.prefiller import Prefiller
from workbench.serving.simulated.run import Cluster
from workbench.transfer.kernels.fairness import max_min_fair


def any_scenario(seed):
    rng = np.random.default_rng(seed)
    made = with_roles(rng, scenario(rng, most_requests=40))
    made = made if seed % 2 else with_ranks(rng, made)
    return made if seed % 3 else with_prefixes(rng, made)


scenarios = st.one_of(st.integers(0, 2**32 - 1).map(any_scenario), small_role_scenarios())


def blocks_are_whose_they_are(place):
    leaving = sum(getattr(place, "leaving", {}).values())
    holders = [*place.running, *getattr(place, "coming", []), *getattr(place, "landed", [])]
    assert place.blocks.in_use == leaving + sum(request.room for request in holders) / place.blocks.tokens_each
    assert place.blocks.free >= 0
    assert all(request.stored <= request.room for request in holders)
    assert place.up or place.blocks.in_use == 0
    if isinstance(place, Decoder):
        assert len(place.running) + len(place.coming) + len(place.landed) + len(place.queue) <= place.slots
        assert all(request.stored == request.need for request in (*place.coming, *place.landed))
    if isinstance(place, Prefiller):
        assert all(request.prefilling for request in place.running)


def everybody_is_somewhere(cluster):
    """Once; those whose KV waits or is on its way have it in one place, and may be coming to another."""
    places, router, migrations = cluster.instances, cluster.router, cluster.router.migrations
    held = [r for place in places for r in (*place.running, *place.queue, *getattr(place, "landed", []))]
    held += [r for line in router.lines for r in line]
    leaving = [r for place in places for r in getattr(place, "leaving", {})]
    waiting = [r for line in router.decode_lines for r in line]
    coming = [r for place in places for r in getattr(place, "coming", [])]
    assert {*leaving} == {*waiting, *coming}
    assert len(leaving) == len(waiting) + len(coming)
    assert {*coming} == {*migrations.flows} == {*migrations.coming.values()}
    gone = [r for r in cluster.requests if r.status != INSIDE]
    everybody = [*held, *leaving, *gone]
    assert len({*everybody}) == len(everybody)
    assert {r for r in cluster.requests if r.arrival_s < cluster.clock.now} <= {*everybody}
    for line in (*router.lines, *router.decode_lines, *(place.queue for place in places)):
        ranks = [request.rank for request in line]
        assert ranks == sorted(ranks)


def rates_are_fair(flows, egress, ingress):
    """No link carries more than it can; every transfer crosses a full link on which no other is faster."""
    links = {("out", k): rate for k, rate in enumerate(egress)} | {("in", k): rate for k, rate in enumerate(ingress)}
    crossed = {flow: (("out", flow.source), ("in", flow.target)) for flow in flows}
    users = {link: [flow for flow in flows if link in crossed[flow]] for link in links}
    full = {link for link in links if isfinite(links[link])}
    for link in list(full):
        carried = sum(flow.rate for flow in users[link])
        assert carried <= links[link] * (1 + 1e-12)
        if carried < links[link] * (1 - 1e-12):
            full.remove(link)
    for flow in flows:
        narrow = [link for link in crossed[flow] if isfinite(links[link])]
        assert isfinite(flow.rate) == bool(narrow)
        fastest = [max(other.rate for other in users[link]) for link in crossed[flow] if link in full]
        assert not narrow or any(flow.rate >= rate * (1 - 1e-12) for rate in fastest)


def watched(lowered):
    """The run, looked at after each event, and how many bytes each transfer has moved at its rates."""
    cluster = Cluster(lowered)
    links, clock, moved = cluster.router.migrations.links, cluster.clock, {}
    while clock.peek() <= min(lowered.until_s, np.finfo(float).max):
        before_s, rates = clock.now, [(flow, flow.rate) for flow in links.flows]
        clock.step()
        for flow, rate in rates:
            sent = rate * (clock.now - before_s) if isfinite(rate) else inf
            moved[flow] = min(flow.size, moved.get(flow, 0.0) + sent)
        for place in cluster.instances:
            blocks_are_whose_they_are(place)
            assert place.outstanding <= place.limit
        everybody_is_somewhere(cluster)
        rates_are_fair(links.flows, links.egress, links.ingress)
        assert all(flow.left >= 0 for flow in links.flows)
    for flow, _ in cluster.router.migrations.log:
        assert np.isnan(flow.end_s) or moved.get(flow, 0.0) == pytest.approx(flow.size, rel=1e-9)
    return cluster


@settings(max_examples=200, deadline=None)
@given(scenarios)
@example(any_scenario(1592955))  # links without bounds, on which a transfer still takes the latency
def test_nothing_is_lost(lowered):
    cluster = watched(lowered)
    run = cluster.outcome()
    status, made = run.status, run.made
    assert (made[status == DONE] == lowered.requests.output[status == DONE]).all()
    assert (made[status == REJECTED] == 0).all()
    assert (np.bincount(run.segments[:, 0], run.segments[:, 2], minlength=made.size) == made).all()
    if lowered.until_s == np.inf and (lowered.failures.back_s < np.inf).all():
        assert (status != INSIDE).all()
        assert all(place.blocks.in_use == 0 for place in cluster.instances)
    start_s, end_s, request, source, target, size = run.flows.T
    assert (np.diff(start_s) >= 0).all()
    ended = ~np.isnan(end_s)
    assert (end_s[ended] >= start_s[ended] + lowered.network.latency_s).all()
    rate = np.minimum(lowered.network.egress[source.astype(int)], lowered.network.ingress[target.astype(int)])
    assert (end_s[ended] - start_s[ended] >= (size / rate)[ended] * (1 - 1e-9) - 1e-9).all()
    tokens = lowered.requests.prompt + lowered.requests.output
    per_token = lowered.network.kv_bytes[lowered.requests.model]
    assert (size <= (tokens * per_token)[request.astype(int)]).all()
    assert (size >= (lowered.requests.prompt * per_token)[request.astype(int)]).all()
    roles = lowered.instances.role
    assert (roles[source.astype(int)] == 1).all()
    assert (roles[target.astype(int)] == 2).all()


@given(st.data())
def test_rates_are_those_of_progressive_filling(data):
    """To the bit those of the kernel that multicasts use, where every link is bounded; without bounds, endless."""
    n = data.draw(st.integers(1, 4))
    capacities = st.lists(st.one_of(st.floats(0.01, 100), st.just(inf)), min_size=n, max_size=n)
    egress, ingress = data.draw(capacities), data.draw(capacities)
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=8))
    flows = [Flow(0.0, *pair, 1.0) for pair in pairs]
    share_out(flows, egress, ingress)
    rates_are_fair(flows, egress, ingress)
    bounded = [k for k, rate in enumerate([*egress, *ingress]) if isfinite(rate)]
    paths = [[bounded.index(port) for port in (out, n + to) if port in bounded] for out, to in pairs]
    first = np.cumsum([0, *map(len, paths)])
    resource = np.array([port for path in paths for port in path], dtype=np.int64)
    wanted = np.empty(len(pairs))
    max_min_fair(first, resource, np.array([[*egress, *ingress][port] for port in bounded]), wanted)
    assert [flow.rate for flow in flows] == wanted.tolist()


def test_the_scenarios_have_what_can_go_wrong():
    names = ["landed", "cancelled", "shared", "moves", "evictions", "prefilled where it decodes", "rejected", "inside"]
    seen = dict.fromkeys(names, 0)
    for seed in range(120):
        lowered = any_scenario(seed)
        cluster = Cluster(lowered)
        cluster.run(lowered.until_s)
        run = cluster.outcome()
        end_s = run.flows[:, 1]
        seen["landed"] += (~np.isnan(end_s)).sum()
        seen["cancelled"] += np.isnan(end_s).sum()
        seen["shared"] += (run.flows[1:, 0] < end_s[:-1]).sum()
        seen["moves"] += run.moves.sum()
        seen["evictions"] += run.evictions.sum()
        seen["prefilled where it decodes"] += (lowered.instances.role[run.prefill[run.prefill >= 0]] == 2).sum()
        seen["rejected"] += (run.status == REJECTED).sum()
        seen["inside"] += (run.status == INSIDE).sum()
    assert min(seen.values()) > 20, seen
