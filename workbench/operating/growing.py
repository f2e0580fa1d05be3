"""A system that scales, on a cluster: its pool of places, each model's rule, the plan by which an instance starts."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from workbench.errors import InputError, UserError
from workbench.operating.serving_early import serving_early
from workbench.operating.system_record import System
from workbench.profiles import Cluster, Deployment, Model
from workbench.records import LARGEST
from workbench.serving import Autoscaler, Engine, Pool, StartUp, StepForm, Weights, pool_on, weights_on
from workbench.serving.model.scenario import UNBOUNDED
from workbench.serving.policy.scalers import PARAMETERS, SCALERS, USUAL

FULL_STEP_TOKENS = 2048
"""Of the step by which an instance's prompt rate is told, where the budget allows so many."""

MOVED_SHARES = 0.4, 0.8
"""Of the rate at which links move KV, between which BlitzScale's artifact keeps decoding (notes on it, §2.6)."""


class Bounds(NamedTuple):
    """Least and most instances of each model, and what a reader should know about them."""

    least: int
    most: int
    note: str


def bounds_of(system: System, deployment: Deployment) -> Bounds:
    """Between which numbers an autoscaler may choose.

    Instances here serve prompts and decodes alike. A colocated deployment bounds their number by `prefill`; bounds of
    both kinds add up; without bounds there are at least the system's `least` and at most what the cluster holds.
    """
    prefill, decode = deployment.prefill, deployment.decode
    if prefill is None and decode is None:
        return Bounds(system.least, LARGEST, "")
    if deployment.colocated:
        if prefill is None:
            return Bounds(system.least, LARGEST, "Bounds of decoding play no part: the deployment is colocated.")
        note = " Bounds of decoding play no part: the deployment is colocated." if decode else ""
        return Bounds(*prefill, f"Each model has {prefill[0]} to {prefill[1]} instances, by the deployment.{note}")
    given = [one for one in (prefill, decode) if one is not None]
    least, most = (sum(one[k] for one in given) for k in (0, 1))
    both = "both kinds together" if len(given) == 2 else "the one kind that is bounded"
    note = (
        f"Instances of {system.name} serve prompts and decodes alike: each model has {least} to {most}, the bounds of"
    )
    return Bounds(least, most, f"{note} {both}.")


def pool_of(system: System, cluster: Cluster, deployment: Deployment, models: Mapping[str, Model]) -> Pool:
    """The places of a cluster, with what its hosts keep.

    Raises:
        UserError: hosts that differ, or that state no SSD where one may have to be read.
    """
    names = ("tick_s", "scrape_s", "stale_s", "detect_s")
    settings = {name: getattr(system, name) for name in names}
    if system.cache_bytes is not None:
        settings["cache_bytes"] = system.cache_bytes
    pool = pool_on(cluster, deployment.tp, cached=tuple(models) if system.cached else (), **settings)
    if pool.ssd_bytes_per_s is None and system.path in ("tiers", "multicast", "chains"):
        raise UserError(
            f"System {system.name} reads weights from SSD where it finds them nowhere else, but {cluster.name} states "
            "no SSD; choose a cluster that does, give ssd_bytes_per_s to wb.cluster, or take another path of weights."
        )
    return pool


def start_up_of(
    system: System, model: Model, cluster: Cluster, deployment: Deployment, step: StepForm, places: int
) -> StartUp:
    """The plan by which an instance of a model starts.

    Parameters:
        model: in the deployment's number format.
        step: of an instance, when it is there.
        places: instances that the cluster holds.

    Raises:
        UserError: a path of weights over a link that no source states; a model of fewer layers than a pipeline has
            stages.
    """
    weights = weights_on(
        model, cluster, deployment.tp, system.path, system.schedule, system.blocks,
        fixed_s=system.load_s, ttl_s=system.cache_ttl_s, keep_s=system.keep_s,
    )  # fmt: skip
    weights = (
        _chained(system, weights) if system.path == "chains" else serving_early(system, weights, model, step, places)
    )
    return StartUp(engine=system.engine_start, weights=weights, warm_up=system.warm_up)


def _chained(system: System, weights: Weights) -> Weights:
    """The weights of an instance, with how a system sends them by chains."""
    settings = {
        name: getattr(system, name)
        for name in ("lag_s", "decode_first", "reroute", "memory_first", "hosts_send", "pinned")
    }
    settings |= {"live": system.live != "no", "only_worth": system.live in ("worth", "promise")}
    if system.live == "promise":
        settings |= {"promise_s": system.promise_s, "judged": system.judged}
    if system.chains is not None:
        settings["chains"] = system.chains
    if not system.near:
        settings["near_bytes_per_s"] = None
    return Weights(**weights.model_dump() | settings)


def autoscaler_of(
    system: System, bounds: Bounds, step: StepForm, kv_tokens: int, tp: int, requests_per_s: float,
    moved_tokens_per_s: float = 0.0,
) -> Autoscaler:  # fmt: skip
    """A model's rule with all its parameters.

    What the rule leaves out is worked out: *backlog* from the rate at which a full step processes prompts and the KV
    blocks of an instance; *queue* starts an instance for as many waiting requests as one takes at a time, times its
    accelerators, as λScale's artifact does; *concurrency* gives each instance as many as it takes, where that has a
    bound; *rate* as many a second as one bears. *roles* is worked out as *backlog*, and from the KV that the links of
    an instance carry.

    Parameters:
        system: whose rule.
        bounds: see `bounds_of`.
        step, kv_tokens: of an instance of the model.
        tp: accelerators of an instance.
        requests_per_s: that an instance bears on average, for the rule *rate*.
        moved_tokens_per_s: whose KV the links of an instance carry, where instances send each other any.
    """
    rule, engine = system.autoscaler, system.batching
    taken = system.limit or (engine.slots if engine.slots < UNBOUNDED else math.inf)
    worked_out = {
        "prompt_tokens_per_s": prompt_rate(step, engine),
        "blocks": kv_tokens // engine.block_tokens,
        "waiting": (system.limit or 1) * tp,
        "requests": taken,
        "requests_per_s": requests_per_s,
        "lower_moved_per_s": MOVED_SHARES[0] * moved_tokens_per_s,
        "upper_moved_per_s": MOVED_SHARES[1] * moved_tokens_per_s,
    }
    names = [name for name in PARAMETERS[SCALERS[rule.policy]] if name not in USUAL]
    parameters = {name: worked_out[name] for name in names} | dict(rule.parameters)
    if wrong := next((name for name, value in parameters.items() if not 0 < value < float("inf")), None):
        raise InputError("cannot be worked out from these requests", f"give {wrong} in the rule", field="autoscaler")
    settings = {name: getattr(rule, name) for name in ("up_ticks", "down_ticks", "down_step")}
    return Autoscaler(policy=rule.policy, parameters=parameters, least=bounds.least, most=bounds.most, **settings)


def prompt_rate(step: StepForm, engine: Engine) -> float:
    """Prompt tokens/s of an instance: one prompt that fills a step's budget, or 2,048 tokens where it is larger."""
    tokens = min(engine.budget, engine.chunk, FULL_STEP_TOKENS)
    return tokens / float(step.seconds(tokens, tokens * tokens, 0, 1))
