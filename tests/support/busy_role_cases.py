"""Clusters in which busy rows that compute prompts are taken to decode, for tests."""

import numpy as np
from scaling_cases import growing, row
from sent_weights_cases import with_chains
from serving_cases import ONE_SECOND, asked, with_batches, with_ranks

from workbench.serving.model.lowered import DECODE, NO_LIMIT, PREFILL, Lowered, Updates
from workbench.serving.model.scaled import EMPTY, UP
from workbench.serving.policy import SCALERS, SOURCES


def busy_scenario(seed: int) -> Lowered:
    """Bursts on places of one or two models, of which a few decode and more compute prompts at first; with failures,
    weights by chains, tails that help, ranks, new versions of weights, or none of these. Half of them are on a grid of
    times."""
    rng = np.random.default_rng([seed, 23])
    grid, models, places = bool(seed % 2), int(rng.choice([1, 1, 2])), int(rng.integers(3, 8))
    step_s = 0.25 if grid else float(rng.uniform(0.1, 0.4))

    def moments(size, most):
        return rng.integers(0, round(most / step_s) + 1, size) * step_s if grid else rng.uniform(0, most, size)

    def each(*values):
        return rng.choice(values, 2 * models)

    count = int(rng.integers(10, 50))
    arrival_s = np.sort(np.repeat(moments(5, 12), 10)[:count] + moments(count, 2))
    shapes = rng.integers(1, [int(rng.choice([6, 30])), int(rng.choice([3, 14]))], (count, 2))
    model = rng.integers(0, models, count)
    requests = [
        asked(t - arrival_s[0], *shape, model=m, draw=rng.random(2))
        for t, shape, m in zip(arrival_s, shapes.tolist(), model.tolist(), strict=True)
    ]
    engine = {
        "limit": int(rng.choice([3, NO_LIMIT, NO_LIMIT])),
        "slots": int(rng.choice([1, 3, 8])),
        "blocks": int(rng.choice([12, 30, 200])),
        "budget": int(rng.choice([8, 40, 100])),
        "chunk": int(rng.choice([8, 100])),
        "form": ONE_SECOND if grid else ((0.1, 0.01, 0.001, 0.001, 0.02), (0.2, 0.0, 0.0, 0.0, 0.0)),
    }
    first = [int(rng.choice([EMPTY, PREFILL, PREFILL, DECODE])) for _ in range(places)]
    first[:2] = [DECODE, PREFILL]
    rows = [
        row(p, p % 2, UP if first[p] == role and p % models == m else EMPTY, float(moments(1, 1)[0]), model=m,
            role=role, **engine)
        for p in range(places)
        for m in range(models)
        for role in (PREFILL, DECODE)
        if rng.random() < 0.95 or p < 2 or (role, m) == (PREFILL, 0)
    ]  # fmt: skip
    failures = [(t, int(rng.integers(places)), t + 1) for t in sorted(moments(2, 20))] if seed % 3 == 0 else []
    failures = failures if len({p for _, p, _ in failures}) == len(failures) else failures[:1]
    kinds = SCALERS["concurrency"], SCALERS["queue"], SCALERS["roles"]
    prompts = [*kinds, SCALERS["none"], SCALERS["none"]]
    lowered = growing(
        requests,
        rows,
        failures,
        int(rng.integers(6)),
        kind=np.concatenate([rng.choice(prompts, models), rng.choice(kinds, models)]),
        par=rng.choice([0.5, 1, 2, 6], (2 * models, 8)),
        min_rows=each(0, 1),
        max_rows=each(2, 99),
        tick_s=float(rng.choice([1, 3])) * step_s,
        scrape_ticks=int(rng.choice([0, 0, 1])),
        down_step=each(1, 99),
        source=each(SOURCES["fixed"], SOURCES["tiers"], SOURCES["multicast"]),
        fixed_s=moments(2 * models, 4),
        multicast_s=np.sort(moments((2, 3, 3), 4)),
        keep_s=each(0.0, 1.0, np.inf) * step_s,
        egress=float(rng.choice([2, 16, np.inf])),
        ingress=float(rng.choice([4, 16])),
    )
    if seed % 5 < 3:
        lowered = with_chains(rng, lowered)
    if seed % 4 == 3:
        lowered = with_ranks(rng, lowered)
    if seed % 7 < 2:
        time_s = np.unique(moments(2, 20)).astype(float)
        lowered = lowered._replace(updates=Updates(time_s, rng.integers(0, models, time_s.size)))
    lowered = with_batches(seed, lowered) if seed % 3 == 1 else lowered
    groups, given = 2 * models, lowered.scaling
    decodes = np.arange(groups) >= models
    return lowered._replace(
        scaling=given._replace(
            mutate=np.where(decodes, rng.choice([1, 2, 2], groups), 0),
            requeue=rng.integers(0, 2, groups),
            stays=rng.integers(0, 2, groups) * decodes,
            live=np.where(given.source == SOURCES["chains"], rng.integers(0, 3, groups), 0),
            layers=rng.choice([4, 32], groups),
        )
    )
