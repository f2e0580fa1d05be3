"""Small serving clusters for tests: rows with defaults, put together as the arrays that both backends take."""

import numpy as np
from hypothesis import strategies as st

from workbench.serving.model.lowered import (
    COLOCATED,
    DECODE,
    NO_LIMIT,
    PREFILL,
    Failures,
    Instances,
    Lowered,
    Network,
    Requests,
)

ONE_SECOND = ((1.0, 0.0, 0.0, 0.0, 0.0), (0.0,) * 5)
"""Every step takes one second, whatever it holds."""


def asked(arrival_s, prompt, output, model=0, draw=(0.0, 0.0), rank=0, prefix=()):
    """One request; `prefix` has the ids of its leading hash blocks."""
    return arrival_s, prompt, output, model, draw, rank, prefix


def place(
    model=0, limit=NO_LIMIT, slots=8, budget=100, chunk=100, block=4, blocks=100, reserve=0, whole=0, apart=0,
    cache=0, role=0, batch=0, form=ONE_SECOND,
):  # fmt: skip
    """One instance: by default there is plenty of everything, and blocks of four tokens."""
    return model, limit, slots, budget, chunk, block, blocks, reserve, whole, apart, cache, role, batch, form


def cluster(requests, places, failures=(), route=0, until_s=np.inf, prefix_tokens=4) -> Lowered:
    """A run; failures are rows (time, instance, back)."""
    columns = zip(*requests, strict=True) if requests else ((),) * 7
    arrival_s, prompt, output, model, draw, rank, prefixes = columns
    whole_columns = map(_whole, (prompt, output, model))
    prefix_at = np.cumsum([0, *map(len, prefixes)])
    prefix = _whole([one for prefix in prefixes for one in prefix])
    *whole_numbers, form = zip(*places, strict=True)
    time_s, instance, back_s = zip(*failures, strict=True) if failures else ((),) * 3
    return Lowered(
        Requests(
            _real(arrival_s),
            *whole_columns,
            _real(draw).reshape(-1, 2),
            _whole(rank),
            prefix_at,
            prefix,
            prefix_tokens if prefix.size else 0,
        ),
        Instances(*map(_whole, whole_numbers), _real(form).reshape(-1, 2, 5)),
        Failures(_real(time_s), _whole(instance), _real(back_s)),
        route,
        until_s,
    )


def migrating(
    requests, places, failures=(), egress=4.0, ingress=4.0, latency_s=0.0, kv_bytes=1.0, **settings
) -> Lowered:  # fmt: skip
    """A run whose instances have roles; rates are one for all or one each, a token's KV is one byte."""
    n, models = len(places), 1 + max(one[0] for one in places)
    rates = [np.broadcast_to(_real(rate), n).copy() for rate in (egress, ingress)]
    network = Network(*rates, latency_s, np.broadcast_to(_real(kv_bytes), models).copy())
    return cluster(requests, places, failures, **settings)._replace(network=network)


def _whole(values) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def _real(values) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def scenario(rng: np.random.Generator, most_requests=120) -> Lowered:
    """Any cluster and load: few KV blocks, failures, every kind of engine, and ties where times lie on a grid."""
    grid = bool(rng.integers(2))
    count, models = int(rng.integers(1, most_requests)), int(rng.integers(1, 4))
    gaps = rng.integers(0, 4, count) / 4 if grid else rng.exponential(rng.choice([0.02, 0.3, 2.0]), count)
    arrival_s = np.cumsum(gaps) - gaps[0]
    longest = int(rng.choice([3, 12, 40]))
    shapes = rng.integers([1, 0, 0], [longest + 1, longest, models], (count, 3)).tolist()
    requests = [
        asked(t, *shape, draw) for t, shape, draw in zip(arrival_s, shapes, rng.random((count, 2)), strict=True)
    ]
    places = [_any_place(rng, longest, models, grid) for _ in range(rng.integers(1, 6))]
    if rng.random() < 0.3:  # all alike: many steps end together
        places = places[:1] * len(places)
    end_s = float(arrival_s[-1]) + 4.0
    failures = sorted(row for j in range(len(places)) for row in _any_failures(rng, j, end_s, grid))
    until_s = np.inf if rng.random() < 0.7 else float(np.ceil(4 * rng.random() * end_s) / 4)
    return cluster(requests, places, failures, int(rng.integers(6)), until_s)


def _any_place(rng, longest, models, grid):
    block = int(rng.choice([1, 2, 4, 7]))
    blocks = int(np.ceil(2 * longest / block * rng.choice([0.7, 1.0, 1.2, 1.6, 2.5, 20.0])))
    if grid:
        row = np.array([1.0, 1 / 8, 1 / 64, 1 / 64, 1 / 8]) / 4
    else:
        row = rng.lognormal(-3, 1, 5) * [1, 0.2, 0.01, 0.01, 0.1]
    first = row * (rng.random(5) < [1, 0.5, 0.3, 0.5, 0.5])
    second = row[::-1] / 4 * (rng.random() < 0.3)
    return place(
        model=int(rng.integers(models)),
        limit=int(rng.choice([1, 2, 5, NO_LIMIT])),
        slots=int(rng.choice([1, 3, 8, 64])),
        budget=int(rng.choice([1, 2, 7, 64, 512])),
        chunk=int(rng.choice([1, 4, 512])),
        block=block,
        blocks=max(1, blocks),
        reserve=int(rng.random() < 0.15),
        whole=int(rng.random() < 0.2),
        apart=int(rng.random() < 0.3),
        form=(first, second),
    )


def _any_failures(rng, instance, end_s, grid):
    """Failures of one instance, the next one at or after the recovery from the one before; the last may be for ever."""
    time_s = 0.0
    for _ in range(rng.choice([0, 0, 1, 3, 10])):
        up_s, down_s = rng.exponential(end_s / 5), rng.exponential(end_s / 10)
        if grid:
            up_s, down_s = np.floor(4 * up_s) / 4, np.ceil(4 * down_s) / 4
        start_s = time_s + up_s
        time_s = start_s + down_s if rng.random() < 0.9 else np.inf
        yield float(start_s), instance, float(time_s)
        if not time_s < np.inf:
            return


def with_ranks(rng: np.random.Generator, base: Lowered, ranks: int = 3) -> Lowered:
    """The same requests, each of one of some ranks."""
    n = len(base.requests.rank)
    return base._replace(requests=base.requests._replace(rank=rng.integers(ranks, size=n)))


def with_prefixes(rng: np.random.Generator, base: Lowered) -> Lowered:
    """The same requests, many of which begin alike, on instances that keep prefixes, or some of them."""
    kinds, tokens = int(rng.integers(1, 5)), int(rng.choice([1, 3, 8]))
    longest = 1 + base.requests.prompt // tokens
    shared = rng.integers(0, 12, (kinds, int(longest.max(initial=1))))  # the same id may come twice in a prompt
    shared = shared if rng.random() < 0.3 else np.arange(shared.size).reshape(shared.shape)
    lists = [shared[rng.integers(kinds), : rng.integers(most + 1)] for most in longest]
    prefix = np.concatenate([np.empty(0, np.int64), *lists]).astype(np.int64)
    prefix = np.unique(prefix, return_inverse=True)[1].astype(np.int64)
    requests = base.requests._replace(
        prefix_at=np.cumsum([0, *map(len, lists)]), prefix=prefix, prefix_tokens=tokens if prefix.size else 0
    )
    cache = rng.choice([0, 1, 3, 10, 1000], len(base.instances.cache))
    return base._replace(requests=requests, instances=base.instances._replace(cache=cache))


def with_roles(rng: np.random.Generator, base: Lowered) -> Lowered:
    """The same load, on instances of which most only compute prompts or only decode; on the same grid of times."""
    grid = bool((4 * base.requests.arrival_s % 1 == 0).all())
    n = len(base.instances.model)
    models = max(1, n // 2) if rng.random() < 0.5 else 1
    model, role = np.arange(n) % models, np.full(n, COLOCATED)
    for m in range(models):
        mine = np.flatnonzero(model == m)
        if mine.size > 1 and rng.random() < 0.9:
            role[mine] = rng.integers(PREFILL, DECODE + 1, mine.size)
            role[mine[:2]] = rng.permutation([PREFILL, DECODE])
    rates = np.array([2.0, 8.0, 16.0, 64.0, np.inf]) if grid else rng.lognormal(2, 1.5, 4)
    egress, ingress = rng.choice(rates, n), rng.choice(rates, n)
    latency_s = float(rng.choice([0.0, 0.25, 1.0]) if grid else rng.choice([0.0, 0.3]) * rng.random())
    network = Network(egress, ingress, latency_s, rng.choice([0.0, 1.0, 4.0] if grid else [0.3, 1.7], models + 3))
    requests = base.requests._replace(model=base.requests.model % (models + (rng.random() < 0.1)))
    return base._replace(
        requests=requests, instances=base.instances._replace(model=model, role=role), network=network
    )  # fmt: skip


def with_batches(seed: int, base: Lowered) -> Lowered:
    """In half of them most instances that compute prompts only take them only when they are free."""
    rng, role = np.random.default_rng([seed, 41]), base.instances.role
    if rng.random() < 0.5:
        return base
    batch = rng.choice([0, 1, 6, 20, 60, 400], role.size) * (role == PREFILL)
    return base._replace(instances=base.instances._replace(batch=batch))


def busy_scenario(rng: np.random.Generator) -> Lowered:
    """Hundreds of long requests on up to twelve instances whose memory just suffices, with failures between them."""
    count, size, dyadic = int(rng.integers(200, 600)), int(rng.choice([1, 4, 12])), bool(rng.integers(2))
    arrival_s = np.cumsum(rng.exponential(1 / (size * rng.choice([2, 8, 20])), count))
    arrival_s = np.round(64 * (arrival_s - arrival_s[0])) / 64 if dyadic else arrival_s - arrival_s[0]
    prompts = np.minimum(1 + rng.lognormal(4.5, 1, count).astype(int), 2000)
    outputs = np.minimum(rng.geometric(1 / 100, count), 600) - 1
    requests = list(map(asked, arrival_s, prompts, outputs, np.zeros(count, dtype=int), rng.random((count, 2))))
    compute, memory = (6e-3, 40e-6, 1e-9, 30e-9, 20e-6), (5e-3, 1e-5, 0.0, 1e-7, 1e-5)
    if dyadic:
        compute, memory = (2**-6, 2**-12, 0.0, 2**-20, 2**-13), (2**-7, 0.0, 0.0, 2**-18, 0.0)
    places = []
    for _ in range(size):
        block = int(rng.choice([1, 16, 64]))
        places.append(
            place(
                limit=int(rng.choice([16, NO_LIMIT])),
                slots=int(rng.choice([8, 64, 256])),
                budget=int(rng.choice([256, 2048])),
                chunk=int(rng.choice([128, 2048])),
                block=block,
                blocks=int(np.ceil(2700 * rng.choice([1.2, 3, 10]) / block)),
                form=(compute, memory),
            )
        )
    failures = sorted(row for j in range(size) for row in _any_failures(rng, j, float(arrival_s[-1]), dyadic))
    return cluster(requests, places, failures, int(rng.integers(6)))


@st.composite
def small_scenarios(draw) -> Lowered:
    """A few requests on up to three instances, drawn number by number, so that what fails shrinks to a small case."""
    grid = draw(st.booleans())
    moments = st.integers(0, 12).map(lambda k: k / 4) if grid else st.floats(0, 3)
    lengths = st.integers(0, 12).map(lambda k: k / 4 + 0.25) if grid else st.floats(0.01, 3)
    models = draw(st.integers(1, 2))
    requests = draw(st.lists(_small_requests(moments, models), min_size=1, max_size=12))
    requests = sorted((row[0] - min(requests)[0], *row[1:]) for row in requests)
    parts = st.sampled_from([0.0, 0.125, 0.25]) if grid else st.floats(0, 0.3)
    places = draw(st.lists(_small_places(parts, models), min_size=1, max_size=3))
    failures = []
    for instance in range(len(places)):
        end_s = 0.0
        for up_s, down_s in draw(st.lists(st.tuples(moments, lengths), max_size=3)):
            failures.append((end_s + up_s, instance, end_s + up_s + down_s))
            end_s = failures[-1][2]
    until_s = draw(st.one_of(st.just(np.inf), moments))
    return cluster(requests, places, sorted(failures), draw(st.integers(0, 5)), until_s)


def _small_requests(moments, models):
    unit = st.floats(0, 1, exclude_max=True)
    draws, model = st.tuples(unit, unit), st.integers(0, models - 1)
    return st.builds(asked, moments, st.integers(1, 9), st.integers(0, 6), model, draws)


def _small_places(parts, models):
    one_of = st.sampled_from
    return st.builds(
        place,
        model=st.integers(0, models - 1),
        limit=one_of([1, 2, NO_LIMIT]),
        slots=one_of([1, 2, 8]),
        budget=one_of([1, 2, 5, 100]),
        chunk=one_of([1, 3, 100]),
        block=one_of([1, 2, 4]),
        blocks=st.integers(1, 20),
        reserve=st.integers(0, 1),
        whole=st.integers(0, 1),
        apart=st.integers(0, 1),
        form=st.tuples(
            st.tuples(st.just(0.25), parts, parts, parts, parts), st.tuples(parts, parts, parts, parts, parts)
        ),
    )


@st.composite
def small_ranked_scenarios(draw) -> Lowered:
    """One of `small_scenarios` with requests of up to three ranks."""
    base = draw(small_scenarios())
    return base._replace(requests=base.requests._replace(rank=_drawn(draw, st.integers(0, 2), len(base.requests.rank))))


@st.composite
def small_cached_scenarios(draw) -> Lowered:
    """One of `small_ranked_scenarios` whose prompts have up to three hash blocks of a few tokens."""
    base = draw(small_ranked_scenarios())
    n = len(base.requests.rank)
    lists = draw(st.lists(st.lists(st.integers(0, 3), max_size=3), min_size=n, max_size=n))
    prefix = np.unique(_whole([one for own in lists for one in own]), return_inverse=True)[1].astype(np.int64)
    requests = base.requests._replace(
        prefix_at=np.cumsum([0, *map(len, lists)]),
        prefix=prefix,
        prefix_tokens=draw(st.sampled_from([1, 2, 4])) if prefix.size else 0,
    )
    cache = _drawn(draw, st.sampled_from([0, 1, 2, 9]), len(base.instances.cache))
    return base._replace(requests=requests, instances=base.instances._replace(cache=cache))


@st.composite
def small_role_scenarios(draw) -> Lowered:
    """One of `small_cached_scenarios` on two to four instances of one model, some of which only compute prompts."""
    base = draw(small_cached_scenarios())
    n = draw(st.integers(max(2, len(base.instances.model)), 4))
    chosen = _drawn(draw, st.integers(0, len(base.instances.model) - 1), n)
    roles = st.sampled_from([PREFILL, DECODE])
    role = np.concatenate([_whole([PREFILL, DECODE]), _drawn(draw, roles, n - 2)])[
        _whole(draw(st.permutations(range(n))))
    ]
    instances = Instances(*(column[chosen] for column in base.instances))
    rates = st.sampled_from([1.0, 2.0, 4.0, np.inf])
    network = Network(
        _drawn(draw, rates, n).astype(float),
        _drawn(draw, rates, n).astype(float),
        draw(st.sampled_from([0.0, 0.25, 1.0])),
        np.array([draw(st.sampled_from([0.0, 0.25, 1.0, 0.3]))]),
    )
    return base._replace(
        requests=base.requests._replace(model=base.requests.model * 0),
        instances=instances._replace(
            model=instances.model * 0,
            role=role,
            batch=_drawn(draw, st.sampled_from([0, 0, 1, 5]), n) * (role == PREFILL),
        ),
        network=network,
    )


def _drawn(draw, strategy, size) -> np.ndarray:
    """That many values, whole ones as int64 even if there are none."""
    values = np.array(draw(st.lists(strategy, min_size=size, max_size=size)))
    return values if values.dtype.kind == "f" and size else values.astype(np.int64)
