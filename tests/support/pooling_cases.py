"""Runs of pools as arrays: small ones by hand, random ones for twins, one of the size of the paper's."""

from typing import Any

import numpy as np

from workbench.pooling.model.lowered import Lowered, Models, Pool, Requests, Rules
from workbench.pooling.policy.names import ACCUMULATIVE, AFTER_SWITCH, BY_TIME, NO_PREFETCH, TURNS


def rules(**given: Any) -> Rules:
    usual = {
        "system": TURNS, "group_rule": ACCUMULATIVE, "group_limit": 8, "load_rule": BY_TIME, "most_s": 4.0,
        "floor": 0.5, "tbt_s": 0.1, "blind": 0, "clock": AFTER_SWITCH, "prefetch": NO_PREFETCH, "overlap": 1,
        "least_switch_s": 0.0, "give_up_s": np.inf, "buffer_s": np.inf, "block_tokens": 16, "promise_ttft_s": np.inf,
        "promise_tbt_s": 0.1, "admission": 0, "margin": 1.0, "owner_from": 0,
    }  # fmt: skip
    return Rules(**(usual | given))


def models(count: int, **given: Any) -> Models:
    """Models of 1 GB that load in a second, with prompts of 1 ms a token, steps of 10 ms and 1 MB a block."""
    usual = {
        "weight_bytes": np.full(count, 1e9), "load_bytes_per_s": np.full(count, 1e9), "assumed_s": np.full(count, 1.0),
        "home": np.zeros(count, np.int64), "place": np.zeros(count, np.int64), "owner": np.zeros(count, np.int64),
        "owner_most": np.array([10**6]),
        "block_bytes": np.full(count, 10**6), "capacity": np.full(count, 1000), "after": np.ones((count, count), int),
        "prefill": np.tile([0.0, 1e-3, 0.0, 1e-6], (count, 1)), "decode": np.tile([0.01, 0.0, 0.0], (count, 1)),
    }  # fmt: skip
    return Models(**(usual | given))


def pool(prefill: int = 1, decode: int = 1, **given: Any) -> Pool:
    """One node; KV caches move at 1 TB/s, so a block takes a microsecond."""
    roles = np.array([0] * prefill + [1] * decode)
    usual = {
        "node": np.zeros(prefill + decode, np.int64), "decodes": roles, "link_bytes_per_s": 1e12,
        "host_bytes_per_s": np.inf, "kv_bytes": np.inf, "cache_bytes": np.inf, "miss_bytes_per_s": 1e8,
    }  # fmt: skip
    return Pool(**(usual | given))


def requests(rows: list[tuple[float, int, int, int]], **given: Any) -> Requests:
    """(arrival, model, prompt, output) a row."""
    arrival_s, model, prompt, output = (np.array(column) for column in zip(*rows, strict=True))
    usual = {"believed": output, "refused": np.zeros(len(rows), np.int64)}
    return Requests(arrival_s=arrival_s.astype(float), prompt=prompt, output=output, model=model, **(usual | given))


def case(rows: list[tuple[float, int, int, int]], **given: Any) -> Lowered:
    """A run of as many models as the rows name, everything else as usual but what is given by its name."""
    count = 1 + max(row[1] for row in rows)
    of = {name: {key: given[key] for key in given if key in fields} for name, fields in _FIELDS.items()}
    return Lowered(
        requests(rows, **of["requests"]), models(count, **of["models"]), pool(**of["pool"]), rules(**of["rules"])
    )


_FIELDS = {
    "requests": {"believed", "refused"},
    "models": set(Models._fields),
    "pool": set(Pool._fields),
    "rules": set(Rules._fields),
}


def random_case(seed: int, count: int = 60) -> Lowered:
    """A small pool under pressure by rules drawn at random, with ties in time and KV caches that hardly fit."""
    rng = np.random.default_rng(seed)
    pick = lambda *values: values[int(rng.integers(len(values)))]  # noqa: E731
    kinds, nodes, owners = int(rng.integers(1, 8)), pick(1, 2), 2
    shape = [(int(rng.integers(1, 4)), int(rng.integers(1, 4))) for _ in range(nodes)]
    roles = np.concatenate([[0] * prefill + [1] * decode for prefill, decode in shape])
    grid = pick(0.0, 0.05)
    arrival_s = np.sort(rng.exponential(0.15, count).cumsum())
    arrival_s = np.round(arrival_s / grid) * grid if grid else arrival_s
    prompt, output = rng.integers(1, 400, count), rng.integers(0, pick(60, 250), count)
    made_of = {
        "weight_bytes": rng.integers(1, 30, kinds) * 1e9, "load_bytes_per_s": np.full(kinds, pick(10e9, 40e9)),
        "assumed_s": rng.uniform(0.1, 1.5, kinds), "home": rng.integers(0, nodes, kinds),
        "owner": rng.integers(0, owners, kinds), "owner_most": rng.integers(1, 30, owners),
        "block_bytes": rng.integers(1, 40, kinds) * 10**6, "capacity": rng.integers(20, 90, kinds),
        "after": rng.integers(0, 2, (kinds, kinds)),
        "prefill": np.tile([0.005, pick(1e-3, 1e-4), 1e-9, 1e-3], (kinds, 1)),
        "decode": np.column_stack(
            [rng.uniform(0.01, 0.05, kinds), np.full(kinds, pick(0.0, 1e-5)), np.full(kinds, 1e-3)]
        ),
    }  # fmt: skip
    runs_by = rules(
        group_rule=pick(0, 1, 2), group_limit=pick(1, 3, 8), load_rule=pick(0, 1, 2), most_s=pick(0.5, 4.0),
        floor=pick(0.5, 0.2), blind=pick(0, 1), clock=pick(0, 1), prefetch=pick(0, 1, 1, 2), overlap=pick(0, 1, 1),
        least_switch_s=pick(0.0, 0.01), give_up_s=pick(np.inf, 2.0), buffer_s=pick(np.inf, np.inf, 1.0),
        owner_from=pick(0, 10, 10**6), promise_ttft_s=3.0, margin=pick(1.0, 1.5),
    )  # fmt: skip
    gpus = pool(
        node=np.repeat(np.arange(nodes), [sum(pair) for pair in shape]), decodes=roles,
        link_bytes_per_s=pick(1e12, 10e9, 1e9), host_bytes_per_s=pick(np.inf, 60e9, 12e9),
        kv_bytes=pick(np.inf, 20e9), cache_bytes=pick(np.inf, 40e9, 5e9), miss_bytes_per_s=pick(2e9, 50e9),
    )  # fmt: skip
    asked = Requests(
        arrival_s=arrival_s, prompt=prompt, output=output, model=rng.integers(0, kinds, count), believed=output,
        refused=(rng.random(count) < 0.05).astype(np.int64),
    )  # fmt: skip
    return Lowered(asked, models(kinds, **made_of), gpus, runs_by)
