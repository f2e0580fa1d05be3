"""Small clusters that change their size, for tests: rows on places, and everything else by default."""

import numpy as np
from hypothesis import strategies as st
from serving_cases import asked, busy_scenario, cluster, migrating, place, scenario, small_scenarios

from workbench.serving.model.lowered import DECODE, PREFILL, Failures, Instances, Lowered
from workbench.serving.model.scaled import EMPTY, UP, Scaling
from workbench.serving.policy import SCALERS, SOURCES
from workbench.serving.policy.scalers import MULTICAST

OF_MODELS = {
    "kind": 1, "min_rows": 0, "max_rows": 99, "up_ticks": 1, "down_ticks": 1, "down_step": 99, "source": 1,
    "control_s": 0.5, "fixed_s": 1.0, "bytes": 8.0, "ttl_s": np.inf, "keep_s": np.inf,
}  # fmt: skip
"""By default one row starts for each waiting request, its weights come in 1 s, and its engine starts in 0.5 s."""

ROLE = 11
"""Where an engine has its role."""

OF_CHAINS = ("chains", "lag_s", "decode_first", "near_s", "live", "layers", "activation_s", "promise_s", "waits")

WHOLE = {"kind", "min_rows", "max_rows", "up_ticks", "down_ticks", "down_step", "source"}


def row(place_index=0, host=0, start_state=EMPTY, dram_s=0.5, **engine):
    """One row: its place, its host, its state at the start, and its engine as `serving_cases.place` takes it."""
    return place_index, host, start_state, dram_s, place(**engine)


def role_places(*states, **engine):
    """A prefill and a decode row a place, and which of them is up at first, if any."""
    return [
        row(place, start_state=UP if up == role else EMPTY, role=role, **engine)
        for place, up in enumerate(states)
        for role in (PREFILL, DECODE)
    ]


def growing(requests, rows, failures=(), route=0, until_s=np.inf, **changes) -> Lowered:
    """A run with an autoscaler; what is one a model, or one a group, is given for all of them, or as a list.

    With roles, or with links given, KV is one byte a token, and links are as in `serving_cases.migrating`.
    """
    places, hosts, states, dram_s, engines = zip(*rows, strict=True)
    models = 1 + max(engine[0] for engine in engines)
    groups = models * 2 if any(engine[ROLE] for engine in engines) else models
    each = {}
    for name, usual in OF_MODELS.items():
        value = np.array(changes.pop(name, usual), np.int64 if name in WHOLE else float)
        each[name] = np.broadcast_to(value, models if name in ("bytes", "ttl_s") else groups).copy()
    par = np.zeros((groups, 8))
    given = np.array(changes.pop("par", [1.0]), float)
    par[:, : given.shape[-1]] = given
    table = np.array(changes.pop("multicast_s", [[[1.0]]]), float)
    host_count = 1 + max(hosts)
    multicast_s = np.broadcast_to(table, (groups, *table.shape[-3:])).copy()
    base = cluster(requests, engines, failures, route, until_s)
    links = {name: changes.pop(name) for name in ("egress", "ingress", "latency_s", "kv_bytes") if name in changes}
    if groups > models or links:
        base = migrating(requests, engines, failures, route=route, until_s=until_s, **links)
    if "host_egress" in changes:
        host_egress = np.full(host_count, changes.pop("host_egress"), float)
        base = base._replace(network=base.network._replace(host_egress=host_egress))
    of_chains = {}
    for name in OF_CHAINS:
        if name in changes:
            kind = float if name in ("lag_s", "near_s", "activation_s", "promise_s") else np.int64
            of_chains[name] = np.broadcast_to(np.array(changes.pop(name), kind), groups).copy()
    pipelines = {}
    for name, kind in (("piped_s", float), ("piped_with", np.int64), ("piped_form", float), ("switch_whole", np.int64)):
        if name in changes:
            shape = _no_pipelines(base.instances, multicast_s)[name].shape
            pipelines[name] = np.broadcast_to(np.array(changes.pop(name), kind), shape).copy()
    local = {}
    for name, usual in _nothing_local(host_count, multicast_s, models).items():
        local[name] = np.broadcast_to(np.array(changes.pop(name, usual), usual.dtype), usual.shape).copy()
    scaling = Scaling(
        place=np.array(places),
        host=np.array(hosts),
        start_state=np.array(states),
        tick_s=changes.pop("tick_s", 1.0),
        scrape_ticks=changes.pop("scrape_ticks", 0),
        par=par,
        dram_s=np.array(dram_s, float),
        multicast_s=multicast_s,
        ssd_bytes_per_s=np.full(host_count, changes.pop("ssd_bytes_per_s", 4.0)),
        ssd_each_bytes_per_s=np.full(host_count, changes.pop("ssd_each_bytes_per_s", np.inf)),
        cache_bytes=np.full(host_count, changes.pop("cache_bytes", np.inf)),
        cached=np.array(changes.pop("cached", np.zeros((host_count, models))), np.int64),
        **_no_pipelines(base.instances, multicast_s) | pipelines,
        **local,
        **of_chains,
        **each,
    )
    assert not changes, changes
    return base._replace(scaling=scaling)


def scaled_scenario(rng: np.random.Generator, most_requests=80) -> Lowered:
    """Any load of `serving_cases.scenario`, on places that models share, with every policy and source of weights."""
    base = scenario(rng, most_requests)
    grid = bool((4 * base.requests.arrival_s % 1 == 0).all())
    models, places, hosts = 1 + int(base.requests.model.max()), int(rng.integers(1, 6)), int(rng.integers(1, 4))
    host_of, first = rng.integers(hosts, size=places), rng.integers(models, size=places)
    started = rng.random(places) < rng.choice([0.0, 0.5, 1.0])
    rows = [
        (p, host_of[p], UP if started[p] and first[p] == m else EMPTY, m)
        for p in range(places)
        for m in range(models)
        if rng.random() < 0.9 or first[p] == m
    ]
    every_s = float(rng.choice([0.25, 1.0, 3.0])) if grid else float(rng.lognormal(-1, 1))

    def times(size, odds=(0.0, 1.0, 3.0, 12.0)):
        scale = rng.choice(odds, size) * every_s
        return np.floor(4 * scale * rng.random(size)) / 4 if grid else scale * rng.random(size)

    def any_of(*values):
        return rng.choice(values, models)

    size = any_of(2, 8, 9).astype(float)
    sources, targets = rng.integers(1, 4, 2).tolist()
    return _on_places(
        base,
        rng.integers(len(base.instances.model), size=len(rows)),
        *zip(*rows, strict=True),
        tick_s=every_s,
        scrape_ticks=int(rng.choice([0, 0, 1, 3])),
        kind=any_of(0, 1, 2, 3, 4),
        par=rng.choice([0.5, 1, 2, 6], (models, 8)),
        min_rows=any_of(0, 0, 0, 1),
        max_rows=any_of(1, 2, 99),
        up_ticks=any_of(1, 1, 2),
        down_ticks=any_of(1, 1, 3),
        down_step=any_of(1, 2, 99),
        source=any_of(0, 1, 2, 2, 3, 4, 4),
        control_s=times(models, (0.0, 1.0)),
        fixed_s=times(models),
        dram_s=times(len(rows)),
        multicast_s=times((models, sources, targets, targets)),
        bytes=size,
        ssd_bytes_per_s=rng.choice([1.0, 4.0, 10.0], hosts) / every_s,
        cache_bytes=rng.choice([0.0, 9.0, 12.0, np.inf], hosts),
        ttl_s=rng.choice([0.0, 2.0, 5.0, np.inf], models) * every_s,
        cached=rng.integers(0, 2, (hosts, models)),
        keep_s=rng.choice([0.0, 1.0, 3.0, np.inf], models) * every_s,
        ssd_each_bytes_per_s=rng.choice([1.0, 2.5, np.inf, np.inf], hosts) / every_s,
    )


def failing_multicasts(rng: np.random.Generator) -> Lowered:
    """Long copies from few sources to many targets, and places that fail meanwhile: operations that begin again."""
    places, grid, end_s = int(rng.integers(3, 7)), bool(rng.integers(2)), 24.0
    step_s = 0.25 if grid else float(rng.uniform(0.2, 0.5))

    def moments(size, most):
        return rng.integers(0, most / step_s, size) * step_s if grid else rng.uniform(0, most, size)

    bursts = np.repeat(moments(6, end_s), 10) + moments(60, 1.5)
    arrivals, longest = np.sort(bursts), rng.choice([4, 20])
    requests = [asked(t - arrivals[0], *rng.integers(1, [12, longest]), draw=rng.random(2)) for t in arrivals]
    rows = [row(p, p % 2, UP if p == 0 or rng.random() < 0.2 else EMPTY, limit=8) for p in range(places)]
    failures = []
    for p in range(places):
        time_s = 0.0
        while (time_s := time_s + float(moments(1, 12)[0])) < end_s:
            failures.append((time_s, p, time_s + step_s + float(moments(1, 4)[0])))
            time_s = failures[-1][2]
    return growing(
        requests,
        rows,
        sorted(failures),
        int(rng.integers(6)),
        kind=rng.choice([SCALERS["queue"], SCALERS["concurrency"]]),
        par=rng.choice([1, 2, 5], 1),
        tick_s=float(rng.choice([2, 4])) * step_s,
        source=SOURCES["multicast"],
        multicast_s=np.sort(moments((2, places, places), 8)),
        control_s=step_s * rng.integers(0, 2),
        keep_s=rng.choice([0.0, 1.0, 3.0]),
        down_step=1,
    )


def busy_scaled_scenario(rng: np.random.Generator) -> Lowered:
    """One of `serving_cases.busy_scenario` on places that come and go, two a host, with loads of some seconds."""
    base = busy_scenario(rng)
    places = len(base.instances.model)
    tick_s = float(rng.choice([0.25, 1.0, 2.5]))
    return _on_places(
        base,
        np.arange(places),
        np.arange(places),
        np.arange(places) // 2,
        np.where(np.arange(places) < rng.integers(1, places + 1), UP, EMPTY),
        np.zeros(places),
        tick_s=tick_s,
        scrape_ticks=int(rng.integers(0, 3)),
        kind=rng.integers(1, 5, 1),
        par=np.array([[rng.choice([8.0, 300.0]), 0.5, 0.7, 500.0, 0.75, 0.95, 0, 0]]),
        min_rows=rng.integers(0, 2, 1),
        max_rows=np.array([99]),
        up_ticks=rng.integers(1, 3, 1),
        down_ticks=rng.integers(1, 6, 1),
        down_step=rng.integers(1, 3, 1),
        source=rng.choice([2, 4], 1),
        control_s=rng.choice([0.0, 1.5], 1),
        fixed_s=np.array([1.0]),
        dram_s=rng.uniform(0.2, 1, places),
        multicast_s=rng.uniform(0.2, 4, (1, 4, 4, 4)),
        bytes=np.array([15e9]),
        ssd_bytes_per_s=np.full((places + 1) // 2, rng.choice([3e9, 10e9])),
        cache_bytes=np.full((places + 1) // 2, rng.choice([0.0, 20e9])),
        ttl_s=rng.choice([5.0, np.inf], 1),
        cached=rng.integers(0, 2, ((places + 1) // 2, 1)),
        keep_s=rng.choice([0.0, 2.0, 20.0], 1),
        ssd_each_bytes_per_s=np.full((places + 1) // 2, rng.choice([2e9, np.inf])),
    )


def with_pipelines(rng: np.random.Generator, base: Lowered) -> Lowered:
    """The same, with pipelines that serve while weights are sent; on the same grid of times if there is one."""
    given = base.scaling
    grid = bool((4 * base.requests.arrival_s % 1 == 0).all())
    shape, models = given.multicast_s.shape, len(given.kind)
    piped_s = given.multicast_s * rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], shape)
    if grid:
        piped_s = np.floor(4 * piped_s) / 4
    piped_s[rng.random(shape) < 0.15] = np.inf
    if rng.random() < 0.5:  # all members of an operation at once
        piped_s[:] = piped_s.min(axis=3, keepdims=True)
    scaling = given._replace(
        piped_s=piped_s,
        piped_with=rng.integers(0, rng.integers(1, 4), shape),
        piped_form=base.instances.form * rng.choice([0.5, 1.0, 2.0], (len(base.instances.form), 1, 1)),
        switch_whole=rng.integers(0, 2, models),
    )
    return base._replace(scaling=scaling)


def piped_scenarios(size=400):
    """So many clusters whose instances multicast and serve in pipelines meanwhile, with failures; always the same."""
    for seed in range(size):
        rng = np.random.default_rng(seed)
        yield with_pipelines(rng, failing_multicasts(rng) if seed % 4 else scaled_scenario(rng))


def with_memory(rng: np.random.Generator, base: Lowered) -> Lowered:
    """The same, with loads from memory beside multicasts, hosts that send, and copies that stay."""
    given = base.scaling
    grid = bool((4 * base.requests.arrival_s % 1 == 0).all())
    hosts, models, most = len(given.cache_bytes), len(given.kind), given.multicast_s.shape[2]
    shape = models, most, most
    local_s = given.multicast_s[:, 0] * rng.choice([0.25, 0.5, 1.0, 2.0], shape)
    piped_s = local_s * rng.choice([0.0, 0.25, 0.5, 1.0], shape)
    if grid:
        local_s, piped_s = np.floor(4 * local_s) / 4, np.floor(4 * piped_s) / 4
    piped_s[rng.random(shape) < 0.3] = np.inf
    scaling = given._replace(
        source=np.where(rng.random(models) < 0.8, MULTICAST, given.source),
        cached=np.where(rng.random((hosts, models)) < 0.5, 1, given.cached),
        memory_first=rng.integers(0, 2, models),
        local_s=local_s,
        local_piped_s=piped_s,
        local_with=rng.integers(0, rng.integers(1, 4), shape),
        hosts_send=rng.integers(0, 2, models),
        pinned=(rng.random((hosts, models)) < rng.choice([0.0, 0.4])).astype(np.int64),
    )
    return base._replace(scaling=scaling)


def memory_scenarios(size=400):
    """So many clusters that load from memory beside multicasts, half with pipelines too; always the same."""
    for seed in range(size):
        rng = np.random.default_rng([seed, 7])
        base = failing_multicasts(rng) if seed % 4 == 0 else scaled_scenario(rng)
        yield with_memory(rng, with_pipelines(rng, base) if seed % 2 else base)


def any_scenarios(size=400):
    """So many clusters of any kind, and so many whose sources fail; always the same ones."""
    yield from (scaled_scenario(np.random.default_rng(seed)) for seed in range(size))
    yield from (failing_multicasts(np.random.default_rng(seed)) for seed in range(size))


def _on_places(base: Lowered, engines, place, host, start_state, model, **given) -> Lowered:
    """Rows that have the engines of a cluster without autoscaler; failures of its instances are those of places."""
    whole = [np.array(values, np.int64) for values in (place, host, start_state)]
    instances = Instances(*(column[engines] for column in base.instances))._replace(model=np.array(model, np.int64))
    local = _nothing_local(len(given["ssd_bytes_per_s"]), given["multicast_s"], len(given["bytes"]))
    given = _no_pipelines(instances, given["multicast_s"]) | local | given
    scaling = Scaling(*whole, **{name: _array(values) for name, values in given.items()})
    broken = base.failures.instance <= whole[0].max()
    failures = Failures(*(column[broken] for column in base.failures))
    return base._replace(instances=instances, failures=failures, scaling=scaling)


def _no_pipelines(instances: Instances, multicast_s: np.ndarray) -> dict[str, np.ndarray]:
    """What `Scaling` has of pipelines where there are none."""
    return {
        "piped_s": np.full(multicast_s.shape, np.inf),
        "piped_with": np.full(multicast_s.shape, -1),
        "piped_form": instances.form.copy(),
        "switch_whole": np.zeros(len(multicast_s), np.int64),
    }


def _nothing_local(hosts: int, multicast_s: np.ndarray, models: int) -> dict[str, np.ndarray]:
    """What `Scaling` has of loads from memory beside a multicast where there are none."""
    groups, most = len(multicast_s), multicast_s.shape[2]
    return {
        "memory_first": np.zeros(groups, np.int64),
        "local_s": np.zeros((groups, most, most)),
        "local_piped_s": np.full((groups, most, most), np.inf),
        "local_with": np.full((groups, most, most), -1),
        "hosts_send": np.zeros(groups, np.int64),
        "pinned": np.zeros((hosts, models), np.int64),
    }


def _array(values):
    return values if np.isscalar(values) else np.ascontiguousarray(values)


@st.composite
def small_scaled_scenarios(draw) -> Lowered:
    """One of `serving_cases.small_scenarios` on up to three places, drawn number by number, so that it shrinks."""
    base = draw(small_scenarios())
    models = 1 + max(int(base.requests.model.max()), int(base.instances.model.max()))
    places, hosts = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    rows = [(p, m) for p in range(places) for m in range(models)]
    host_of = [draw(st.integers(0, hosts - 1)) for _ in range(places)]
    first = [draw(st.integers(-1, models - 1)) for _ in range(places)]

    def each(strategy, size=models):
        return np.array(draw(st.lists(strategy, min_size=size, max_size=size)))

    quarters = st.integers(0, 8).map(lambda k: k / 4)
    times = quarters if draw(st.booleans()) else st.floats(0, 2)
    sources, targets = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    return _on_places(
        base,
        each(st.integers(0, len(base.instances.model) - 1), len(rows)),
        [p for p, _ in rows],
        [host_of[p] for p, _ in rows],
        [UP if first[p] == m else EMPTY for p, m in rows],
        [m for _, m in rows],
        tick_s=draw(st.sampled_from([0.25, 0.5, 1.0])),
        scrape_ticks=draw(st.integers(0, 2)),
        kind=each(st.integers(0, 4)),
        par=np.tile(each(st.sampled_from([0.5, 1.0, 2.0, 5.0]), 8), (models, 1)),
        min_rows=each(st.integers(0, 1)),
        max_rows=each(st.sampled_from([1, 2, 99])),
        up_ticks=each(st.integers(1, 2)),
        down_ticks=each(st.integers(1, 2)),
        down_step=each(st.sampled_from([1, 99])),
        source=each(st.integers(0, 4)),
        control_s=each(times).astype(float),
        fixed_s=each(times).astype(float),
        dram_s=each(times, len(rows)).astype(float),
        multicast_s=each(times, models * sources * targets**2).astype(float).reshape(models, sources, targets, targets),
        bytes=each(st.sampled_from([1.0, 2.0, 3.0])),
        ssd_bytes_per_s=each(st.sampled_from([1.0, 3.0, 4.0]), hosts),
        cache_bytes=each(st.sampled_from([0.0, 3.0, 4.0, np.inf]), hosts),
        ttl_s=each(st.sampled_from([0.0, 1.0, 2.0, np.inf])),
        cached=each(st.integers(0, 1), hosts * models).reshape(hosts, models),
        keep_s=each(st.sampled_from([0.0, 0.25, 1.0, np.inf])),
        ssd_each_bytes_per_s=each(st.sampled_from([1.0, 2.0, np.inf]), hosts),
    )
