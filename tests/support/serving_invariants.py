"""What holds after every event of a serving run by SimPy, whatever happens."""

from math import isfinite

from workbench.serving.model.lowered import INSIDE
from workbench.serving.model.scaled import DEAD, DRAINING, PIPED, STARTING, UP
from workbench.serving.simulated.decoder import Decoder
from workbench.serving.simulated.prefiller import Prefiller


def blocks_are_whose_they_are(place, serves):
    leaving = sum(getattr(place, "leaving", {}).values())
    holders = [*place.running, *getattr(place, "coming", []), *getattr(place, "landed", [])]
    assert place.blocks.in_use == leaving + sum(request.room for request in holders) / place.blocks.tokens_each
    assert place.blocks.free >= 0
    assert all(request.stored <= request.room for request in holders)
    assert serves or place.blocks.in_use == 0
    if isinstance(place, Decoder):
        assert len(place.running) + len(place.coming) + len(place.landed) + len(place.queue) <= place.slots
        assert all(request.stored == request.need for request in (*place.coming, *place.landed))
    if isinstance(place, Prefiller):
        assert all(request.prefilling for request in place.running)


def everybody_is_somewhere(cluster):
    """Once; those whose KV waits or is on its way have it in one place, and may be coming to another."""
    places, router = cluster.instances, cluster.router
    held = [r for place in places for r in (*place.running, *place.queue, *getattr(place, "landed", []))]
    held += [r for line in router.lines for r in line]
    leaving = [r for place in places for r in getattr(place, "leaving", {})]
    waiting = [r for line in router.decode_lines for r in line]
    coming = [r for place in places for r in getattr(place, "coming", [])]
    waiting += [r for place in places if place.keeps_kv for r in place.leaving if r not in router.migrations.flows]
    assert {*leaving} == {*waiting, *coming}
    assert len(leaving) == len(waiting) + len(coming)
    if router.migrations:
        assert {*coming} == {*router.migrations.flows} == {*router.migrations.coming.values()}
    gone = [r for r in cluster.requests if r.status != INSIDE]
    everybody = [*held, *leaving, *gone]
    assert len({*everybody}) == len(everybody)
    assert {r for r in cluster.requests if r.arrival_s < cluster.clock.now} <= {*everybody}
    for line in (*router.lines, *router.decode_lines, *(place.queue for place in places)):
        ranks = [request.rank for request in line]
        assert ranks == sorted(ranks)


def rates_are_fair(flows, capacity):
    """No link carries more than it can; every transfer crosses a full link on which no other is faster."""
    links = dict(enumerate(capacity))
    crossed = {flow: flow.ports for flow in flows}
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


def places_are_held_once(fleet):
    for rows in fleet.places.values():
        states = [row.state for row in rows]
        assert sum(row.occupied for row in rows) <= 1
        assert DEAD not in states or set(states) == {DEAD}


def work_is_where_it_may_be(fleet, instant_over):
    for row in fleet.rows:
        instance = row.instance
        assert row.state in (UP, PIPED, DRAINING) or not instance.in_use
        assert instance.up == (row.state in (UP, PIPED))
        assert instance.form == (row.piped_form if row.state == PIPED else instance.own_form) or not instance.up
        blocks_are_whose_they_are(instance, row.state in (UP, PIPED, DRAINING))
        if instant_over and row.state == DRAINING:
            assert instance.in_use


def hosts_have_room(fleet):
    """More than fits is there only while rows hold all of it."""
    for host, cache in enumerate(fleet.caches):
        entries = list(cache.last_use_s)
        assert all(cache.size[model] <= cache.capacity for model in entries if model not in cache.pinned)
        full = sum(cache.size[model] for model in entries) > cache.capacity
        assert not full or all(fleet.holds(host, model) or model in cache.pinned for model in entries)


def loads_belong_to_rows(fleet, weights):
    assert set(weights.coming) == {row for row in fleet.rows if row.state in (STARTING, PIPED)}
    pipelines_are_whole(fleet, weights)
    running = weights.operations.values()
    assert {load for operation in running for load in operation.loads} == set(weights.coming.values())
    for row in fleet.rows:
        assert row.uses == sum(row in operation.sources for operation in running)
    for host, ssd in enumerate(weights.ssds):
        assert all(weights.coming[load.row] is load and load.row.host == host for load in ssd.left)
        assert all(0 <= left <= weights.size[load.row.model] for load, left in ssd.left.items())


def pipelines_are_whole(fleet, weights):
    """Rows serve in pipelines that lost no member."""
    for load in weights.coming.values():
        if load.row.state == PIPED:
            assert load.pipeline is not None
            assert load.pipeline not in weights.operations[load.operation].broken


def cluster_is_sound(cluster):
    """All that holds of rows, hosts, loads and requests between any two events, where instances come and go."""
    fleet, clock = cluster.scaled.fleet, cluster.clock
    places_are_held_once(fleet)
    work_is_where_it_may_be(fleet, clock.peek() > clock.now)
    hosts_have_room(fleet)
    loads_belong_to_rows(fleet, cluster.scaled.weights)
    everybody_is_somewhere(cluster)
