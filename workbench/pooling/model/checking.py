"""A run of a pool as arrays, refused where it makes no sense, with the array and row at fault."""

import numpy as np

from workbench.errors import InputError
from workbench.pooling.model.lowered import Lowered, Models, Pool, Requests, Rules
from workbench.pooling.policy.names import (
    ADMISSIONS,
    CLOCKS,
    GROUP_RULES,
    LOAD_RULES,
    PREFETCHES,
    SYSTEMS,
    TURNS,
)
from workbench.serving.model.arrays import reals, right, wholes

POSITIVE = "give numbers above 0"


def checked(lowered: Lowered) -> Lowered:
    """The run in contiguous arrays of the right types.

    Raises:
        InputError: for what cannot be.
    """
    models = _models(lowered.models)
    pool = _pool(lowered.pool)
    rules = _rules(lowered.rules)
    right(models.place < pool.node.size, "models.place", f"name one of {pool.node.size} instances, or -1")
    requests = _requests(lowered.requests, models.weight_bytes.size)
    nodes = 1 + int(pool.node[-1])
    right(models.home < nodes, "models.home", f"name one of {nodes} nodes, from 0")
    if rules.system not in SYSTEMS.values():
        raise InputError(f"is {rules.system}", "give a number of policy.names.SYSTEMS", field="rules.system")
    if rules.system == TURNS:
        for role, word in ((0, "processes prompts"), (1, "decodes")):
            served = np.unique(pool.node[pool.decodes == role])
            right(np.isin(models.home, served), "models.home", f"give every home node an instance that {word}")
        if rules.blind:
            right(models.decode[:, 0] > models.decode[:, 2], "models.decode", "a batch of -1 must take time; see blind")
    return Lowered(requests, models, pool, rules)


def _requests(given: Requests, models: int) -> Requests:
    arrival_s = reals(given.arrival_s, "requests.arrival_s")
    n = arrival_s.size
    right(arrival_s >= 0, "requests.arrival_s", "give times of 0 or more")
    right(np.diff(arrival_s, prepend=0.0) >= 0, "requests.arrival_s", "sort by arrival")
    found = Requests(
        arrival_s=arrival_s,
        prompt=wholes(given.prompt, "requests.prompt", n, 1),
        output=wholes(given.output, "requests.output", n, 0),
        model=wholes(given.model, "requests.model", n, 0),
        believed=wholes(given.believed, "requests.believed", n, 0),
        refused=wholes(given.refused, "requests.refused", n, 0),
    )
    right(found.model < models, "requests.model", f"name one of {models} models, from 0")
    return found


def _models(given: Models) -> Models:
    weight_bytes = reals(given.weight_bytes, "models.weight_bytes")
    count = weight_bytes.size
    if count == 0:
        raise InputError("holds no model", "give at least one", field="models.weight_bytes")
    found = Models(
        weight_bytes=weight_bytes,
        load_bytes_per_s=reals(given.load_bytes_per_s, "models.load_bytes_per_s", (count,)),
        assumed_s=reals(given.assumed_s, "models.assumed_s", (count,)),
        home=wholes(given.home, "models.home", count, 0),
        place=wholes(given.place, "models.place", count, -1),
        owner=wholes(given.owner, "models.owner", count, 0),
        owner_most=wholes(given.owner_most, "models.owner_most", np.size(given.owner_most), 0),
        block_bytes=wholes(given.block_bytes, "models.block_bytes", count, 1),
        capacity=wholes(given.capacity, "models.capacity", count, 0),
        after=wholes(given.after, "models.after", (count, count), 0),
        prefill=reals(given.prefill, "models.prefill", (count, 4)),
        decode=reals(given.decode, "models.decode", (count, 3)),
    )
    for name in ("weight_bytes", "load_bytes_per_s"):
        right(getattr(found, name) > 0, f"models.{name}", POSITIVE)
    for name in ("assumed_s", "prefill", "decode"):
        right(getattr(found, name) >= 0, f"models.{name}", "give numbers of 0 or more")
    right(found.prefill[:, [0, 1, 3]].sum(axis=1) > 0, "models.prefill", "give every prompt a time above 0")
    right(found.decode[:, 0] > 0, "models.decode", "give every step a constant part above 0")
    right(found.owner < found.owner_most.size, "models.owner", "give each owner an entry of owner_most")
    return found


def _pool(given: Pool) -> Pool:
    node = wholes(given.node, "pool.node", np.size(given.node), 0)
    if node.size == 0:
        raise InputError("holds no instance", "give at least one", field="pool.node")
    steps = np.diff(node, prepend=0)
    right((steps == 0) | (steps == 1), "pool.node", "count nodes from 0, instances node after node")
    numbers = {}
    for name in ("link_bytes_per_s", "host_bytes_per_s", "kv_bytes", "cache_bytes", "miss_bytes_per_s"):
        numbers[name] = float(getattr(given, name))
        if not numbers[name] > 0:
            raise InputError(f"is {numbers[name]:g}", POSITIVE, field=f"pool.{name}")
    for name in ("link_bytes_per_s", "miss_bytes_per_s"):
        if numbers[name] == np.inf:
            raise InputError("is infinite", "give a finite rate", field=f"pool.{name}")
    return Pool(node, wholes(given.decodes, "pool.decodes", node.size, 0), **numbers)


_CHOICES = {
    "group_rule": GROUP_RULES,
    "load_rule": LOAD_RULES,
    "clock": CLOCKS,
    "prefetch": PREFETCHES,
    "admission": ADMISSIONS,
    "overlap": {"off": 0, "on": 1},
    "blind": {"off": 0, "on": 1},
}
_ENDLESS = ("give_up_s", "buffer_s", "promise_ttft_s", "promise_tbt_s")


def _rules(given: Rules) -> Rules:
    found = {}
    for name, kind in Rules.__annotations__.items():
        value = found[name] = kind(getattr(given, name))
        if name in _CHOICES and value not in _CHOICES[name].values():
            raise InputError(f"is {value}", f"give 0 to {len(_CHOICES[name]) - 1}", field=f"rules.{name}")
        if not value >= 0 or (value == np.inf and name not in _ENDLESS):
            raise InputError(f"is {value}", "give a number of 0 or more", field=f"rules.{name}")
    for name in ("group_limit", "most_s", "floor", "tbt_s", "block_tokens", "buffer_s", "margin"):
        if not found[name] > 0:
            raise InputError(f"is {found[name]:g}", "give a number above 0", field=f"rules.{name}")
    return Rules(**found)
