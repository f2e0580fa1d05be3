"""Whatever happens to KV caches on their way, nothing is lost or held twice, and links are shared fairly."""

from math import inf, isfinite

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from serving_cases import scenario, small_role_scenarios, with_prefixes, with_ranks, with_roles
from serving_invariants import blocks_are_whose_they_are, everybody_is_somewhere, rates_are_fair

from workbench.serving.model.lowered import DONE, INSIDE, REJECTED
from workbench.serving.simulated.links import Flow, share_out
from workbench.serving.simulated.run import Cluster
from workbench.transfer.kernels.fairness import max_min_fair


def any_scenario(seed):
    rng = np.random.default_rng(seed)
    made = with_roles(rng, scenario(rng, most_requests=40))
    made = made if seed % 2 else with_ranks(rng, made)
    return made if seed % 3 else with_prefixes(rng, made)


scenarios = st.one_of(st.integers(0, 2**32 - 1).map(any_scenario), small_role_scenarios())


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
            blocks_are_whose_they_are(place, place.up)
            assert place.outstanding <= place.limit
        everybody_is_somewhere(cluster)
        rates_are_fair(links.flows, links.capacity)
        assert all(flow.left >= 0 for flow in links.flows)
    for flow, *_ in cluster.router.migrations.log:
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
    flows = [Flow(0.0, (out, n + to), 1.0, None) for out, to in pairs]
    share_out(flows, [*egress, *ingress])
    rates_are_fair(flows, [*egress, *ingress])
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
