"""A run in arrays is checked once, before any backend walks through it."""

import numpy as np

from workbench.errors import InputError
from workbench.records import not_negative
from workbench.records import whole as whole_number
from workbench.serving.model.arrays import checked_forms, reals, right, wholes
from workbench.serving.model.checking_scaling import checked_scaling
from workbench.serving.model.lowered import (
    COLOCATED,
    DECODE,
    PREFILL,
    Failures,
    Instances,
    Lowered,
    Network,
    Outages,
    Requests,
    Updates,
)
from workbench.serving.model.scaled import Scaling
from workbench.serving.policy.routes import ROUTES
from workbench.serving.policy.scalers import CHAINS

MOST_TOKENS = 2**31 - 1
MOST_MODELS = 1_000_000
LARGEST_BLOCK = 65_536
"""Paged instances keep a histogram of this many numbers at most."""


def checked(lowered: Lowered) -> Lowered:
    """The same as contiguous arrays of the types that both backends take, refused where they make no sense.

    Raises:
        InputError: the first array at fault, with the row.
    """
    requests = _requests(lowered.requests)
    instances = _instances(lowered.instances)
    scaling, breakable = lowered.scaling, instances.model.size
    if scaling is not None:
        scaling = checked_scaling(scaling, instances)
        breakable = 1 + int(scaling.place.max())
    failures = _failures(lowered.failures, breakable)
    if lowered.route not in ROUTES.values():
        raise InputError(f"is {lowered.route}", f"give one of 0 to {len(ROUTES) - 1}", field="route")
    if np.isnan(lowered.until_s):
        raise InputError("is NaN", "give a time, or infinity to run to the end", field="until_s")
    hosts = 0 if scaling is None else scaling.cache_bytes.size
    network = _network(lowered.network, instances, hosts)
    if network is None and scaling is not None:
        right(scaling.source != CHAINS, "source", "give a network for weights that come by chains")
    updates = _updates(lowered.updates, scaling)
    outages = _outages(lowered.outages, 0 if network is None else 2 * breakable + hosts)
    return Lowered(
        requests, instances, failures, int(lowered.route), float(lowered.until_s), scaling, network, updates, outages
    )


def _outages(given: Outages, ports: int) -> Outages:
    """Failures of links, of so many that there are."""
    if np.size(given.time_s) and not ports:
        raise InputError("has failures of links, but no network", "give one, or leave them out", field="outages")
    told = _failures(Failures(given.time_s, given.port, given.back_s), ports, "port")
    right(np.isfinite(told.back_s), "back_s", "say when a link is back")
    return Outages(*told)


def _updates(given: Updates, scaling: Scaling | None) -> Updates:
    time_s = reals(given.time_s, "time_s")
    model = wholes(given.model, "model", time_s.size, 0)
    if time_s.size and scaling is None:
        raise InputError("has updates, but no pool in which instances come and go", "add one", field="updates")
    right(model < (0 if scaling is None else scaling.bytes.size), "model", "name a model that the pool serves")
    right(time_s >= 0, "time_s", "count time from the first arrival")
    order = (np.diff(time_s) > 0) | ((np.diff(time_s) == 0) & (np.diff(model) > 0))
    right(order, "time_s", "sort the updates by time and model, one of each model at a time", first_row=2)
    return Updates(time_s, model)


def _requests(given: Requests) -> Requests:
    arrival_s = reals(given.arrival_s, "arrival_s")
    n = arrival_s.size
    if np.size(given.rank) == 0:
        given = given._replace(rank=np.zeros(n, np.int64))
    whole = {name: wholes(getattr(given, name), name, n, least) for name, least in _REQUESTS.items()}
    draw = reals(given.draw, "draw", (n, 2))
    right((draw >= 0) & (draw < 1), "draw", "give numbers from 0 to below 1")
    right(np.diff(arrival_s) >= 0, "arrival_s", "sort the requests by arrival", first_row=2)
    right(arrival_s >= 0, "arrival_s", "count time from the first arrival")
    few = (whole["prompt"] <= MOST_TOKENS) & (whole["output"] <= MOST_TOKENS - whole["prompt"])
    right(few, "output", "give prompt and output together at most 2,147,483,647 tokens")
    right(whole["model"] < MOST_MODELS, "model", f"number the models from 0 to at most {MOST_MODELS - 1:,}")
    return Requests(arrival_s=arrival_s, draw=draw, **whole, **_prefixes(given, n))


def _prefixes(given: Requests, n: int) -> dict:
    prefix = wholes(given.prefix, "prefix", np.size(given.prefix), 0)
    right(prefix < max(1, prefix.size), "prefix", "number the hash blocks from 0, without gaps")
    prefix_at = wholes(given.prefix_at, "prefix_at", n + 1, 0) if np.size(given.prefix_at) else np.zeros(n + 1, int)
    if prefix_at[0] != 0 or prefix_at[-1] != prefix.size or (np.diff(prefix_at) < 0).any():
        raise InputError(
            "does not rise from 0 to the number of ids", "say where each request's begin", field="prefix_at"
        )
    tokens = whole_number(given.prefix_tokens, "prefix_tokens", 1 if prefix.size else 0, MOST_TOKENS)
    return {"prefix_at": prefix_at, "prefix": prefix, "prefix_tokens": tokens}


def _network(given: Network | None, instances: Instances, hosts: int) -> Network | None:
    """Links and KV sizes; needed if and only if instances have roles of their own."""
    roles, n = instances.role, instances.model.size
    if given is None:
        right(roles == COLOCATED, "role", "give a network for KV caches, or let all instances do both phases")
        return None
    for model in np.unique(instances.model):
        found = set(roles[instances.model == model].tolist())
        if found not in ({COLOCATED}, {PREFILL, DECODE}):
            raise InputError(
                f"has a model {model} that is not served by colocated instances only, or by both others",
                "give it prefill and decode instances, or colocated ones", field="role",
            )  # fmt: skip
    egress, ingress = (reals(getattr(given, name), name, (n,), endless=True) for name in ("egress", "ingress"))
    right(egress > 0, "egress", "give rates above 0, or infinity")
    right(ingress > 0, "ingress", "give rates above 0, or infinity")
    kv_bytes = reals(given.kv_bytes, "kv_bytes")
    right(kv_bytes >= 0, "kv_bytes", "give bytes of 0 or more")
    if instances.model.max() >= kv_bytes.size:
        raise InputError(f"has {kv_bytes.size} numbers", "give one for every model", field="kv_bytes")
    host_egress = np.full(hosts, np.inf)
    if np.size(given.host_egress):
        host_egress = reals(given.host_egress, "host_egress", (hosts,), endless=True)
    right(host_egress > 0, "host_egress", "give rates above 0, or infinity")
    return Network(egress, ingress, not_negative(given.latency_s, "latency_s"), kv_bytes, host_egress)


def _instances(given: Instances) -> Instances:
    size = np.size(given.model)
    if size == 0:
        raise InputError("holds no instance", "add one", field="model")
    whole = {name: wholes(getattr(given, name), name, size, least) for name, least in _INSTANCES.items()}
    for name in ("reserve", "whole", "apart"):
        right(whole[name] <= 1, name, "give 0 or 1")
    right(whole["model"] < MOST_MODELS, "model", f"number the models from 0 to at most {MOST_MODELS - 1:,}")
    paged = whole["reserve"] == 0
    right(~paged | (whole["block"] <= LARGEST_BLOCK), "block", f"give blocks of at most {LARGEST_BLOCK:,} tokens")
    right(whole["role"] <= DECODE, "role", "give 0 (colocated), 1 (prefill) or 2 (decode)")
    right((whole["batch"] == 0) | (whole["role"] == PREFILL), "batch", "give 0 to all but those that only prefill")
    return Instances(form=checked_forms(given.form, "form", size), **whole)


def _failures(given: Failures, instances: int, what: str = "instance") -> Failures:
    time_s = reals(given.time_s, "time_s")
    instance = wholes(given.instance, what, time_s.size, 0)
    right(instance < instances, what, f"name one of the {instances} {what}s")
    back_s = np.ascontiguousarray(given.back_s, dtype=np.float64)
    if back_s.shape != time_s.shape:
        raise InputError(f"has shape {back_s.shape}", "give one a failure", field="back_s")
    right(back_s > time_s, "back_s", "let it come back after it failed, or never (infinity)")
    right(np.diff(time_s) >= 0, "time_s", "sort the failures by time", first_row=2)
    same = np.diff(time_s) == 0
    right(~same | (np.diff(instance) > 0), what, f"sort failures at one time by {what}, each named once", first_row=2)
    order = np.lexsort((time_s, instance))
    again = (np.diff(instance[order]) == 0) & (time_s[order][1:] < back_s[order][:-1])
    if again.any():
        row = int(order[1:][again][0])
        raise InputError(
            f"falls on {'an instance' if what == 'instance' else 'a link'} that is down",
            "let it come back first",
            row=row + 1,
            field="time_s",
        )
    return Failures(time_s, instance, back_s)


_REQUESTS = {"prompt": 1, "output": 0, "model": 0, "rank": 0}
_INSTANCES = {"model": 0, "limit": 1, "slots": 1, "budget": 1, "chunk": 1, "block": 1, "blocks": 1}
_INSTANCES |= {"reserve": 0, "whole": 0, "apart": 0, "cache": 0, "role": 0, "batch": 0}
