"""A run in arrays is checked once, before any backend walks through it."""

import numpy as np

from workbench.errors import InputError
from workbench.serving.model.arrays import reals, right, wholes
from workbench.serving.model.checking_scaling import checked_scaling
from workbench.serving.model.lowered import Failures, Instances, Lowered, Requests
from workbench.serving.policy.routes import ROUTES

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
        scaling = checked_scaling(scaling, instances.model)
        breakable = 1 + int(scaling.place.max())
    failures = _failures(lowered.failures, breakable)
    if lowered.route not in ROUTES.values():
        raise InputError(f"is {lowered.route}", f"give one of 0 to {len(ROUTES) - 1}", field="route")
    if np.isnan(lowered.until_s):
        raise InputError("is NaN", "give a time, or infinity to run to the end", field="until_s")
    return Lowered(requests, instances, failures, int(lowered.route), float(lowered.until_s), scaling)


def _requests(given: Requests) -> Requests:
    arrival_s = reals(given.arrival_s, "arrival_s")
    n = arrival_s.size
    whole = {name: wholes(getattr(given, name), name, n, least) for name, least in _REQUESTS.items()}
    draw = reals(given.draw, "draw", (n, 2))
    right((draw >= 0) & (draw < 1), "draw", "give numbers from 0 to below 1")
    right(np.diff(arrival_s) >= 0, "arrival_s", "sort the requests by arrival", first_row=2)
    right(arrival_s >= 0, "arrival_s", "count time from the first arrival")
    few = (whole["prompt"] <= MOST_TOKENS) & (whole["output"] <= MOST_TOKENS - whole["prompt"])
    right(few, "output", "give prompt and output together at most 2,147,483,647 tokens")
    right(whole["model"] < MOST_MODELS, "model", f"number the models from 0 to at most {MOST_MODELS - 1:,}")
    return Requests(arrival_s=arrival_s, draw=draw, **whole)


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
    form = reals(given.form, "form", (size, 2, 5))
    right(form >= 0, "form", "give step-time coefficients of 0 or more")
    # A step may be one request that decodes or one token of a prompt; whatever row counts both gives it a time.
    counted = form[:, :, 0] + form[:, :, 4] > 0
    right(counted.any(axis=1), "form", "give every step a time above 0: a constant part, or one a request")
    return Instances(form=form, **whole)


def _failures(given: Failures, instances: int) -> Failures:
    time_s = reals(given.time_s, "time_s")
    instance = wholes(given.instance, "instance", time_s.size, 0)
    right(instance < instances, "instance", f"name one of the {instances} instances")
    back_s = np.ascontiguousarray(given.back_s, dtype=np.float64)
    if back_s.shape != time_s.shape:
        raise InputError(f"has shape {back_s.shape}", "give one a failure", field="back_s")
    right(back_s > time_s, "back_s", "let an instance come back after it failed, or never (infinity)")
    right(np.diff(time_s) >= 0, "time_s", "sort the failures by time", first_row=2)
    same = np.diff(time_s) == 0
    right(~same | (np.diff(instance) > 0), "instance", "sort failures at one time by instance", first_row=2)
    order = np.lexsort((time_s, instance))
    again = (np.diff(instance[order]) == 0) & (time_s[order][1:] < back_s[order][:-1])
    if again.any():
        row = int(order[1:][again][0])
        raise InputError("falls on an instance that is down", "let it come back first", row=row + 1, field="time_s")
    return Failures(time_s, instance, back_s)


_REQUESTS = {"prompt": 1, "output": 0, "model": 0}
_INSTANCES = {"model": 0, "limit": 1, "slots": 1, "budget": 1, "chunk": 1, "block": 1, "blocks": 1}
_INSTANCES |= {"reserve": 0, "whole": 0, "apart": 0}
