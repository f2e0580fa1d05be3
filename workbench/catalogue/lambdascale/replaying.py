"""λScale's evaluation on the serving engine: a request is a batch of 4 prompts, one node runs one at a time."""

import functools
import math
from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.lambdascale.systems import (
    BLOCKS,
    FAASNET,
    LAMBDASCALE,
    NCCL,
    PARTS,
    SERVERLESSLLM,
    TOKENS,
    World,
    complete_s,
)
from workbench.scaling.model import ScaleOut, Speed, multicast_plans, warm_plans
from workbench.serving import Group, Run, Scenario, StepForm, serve
from workbench.serving.model import Autoscaler, Engine, Multicast, Pool, StartUp, Weights
from workbench.serving.model.multicast_plan import MulticastPlan
from workbench.serving.simulated.run import simulate

IDEAL = "ideal"
MODEL = "model"
PROMPT = 64
"""Tokens of a prompt: not stated, and without effect, since a step takes the recorded seconds whatever it holds."""

_ONE_AT_A_TIME = Engine(slots=1, reserve=True)


class Rules(NamedTuple):
    """How a cluster starts and scales.

    Attributes:
        replicas: instances at first.
        tick_s: between two decisions.
        cache_s: how long unused weights stay in a host's memory, None for no host cache.
        overhead_s: of a dispatch in a pipeline.
        variant, switch: of pipelines, see `workbench.scaling`.
        pinned: hosts whose memory keeps λScale's weights whatever happens.
        hosts_send: whether λScale's hosts send what they have in memory where no GPU has the weights.
        early: whether λScale's nodes serve before they have everything.
    """

    replicas: int
    tick_s: float
    cache_s: float | None
    overhead_s: float
    variant: str = "artifact"
    switch: str = "whole"
    pinned: int = 0
    hosts_send: bool = True
    early: bool = True


def batches(arrival_s: np.ndarray, tokens: int = TOKENS) -> pl.DataFrame:
    """The request table of batches that arrive at given times."""
    columns = {"prompt_tokens": pl.lit(PROMPT), "output_tokens": pl.lit(tokens)}
    return pl.DataFrame({"model": [MODEL] * len(arrival_s), "arrival_s": arrival_s}).with_columns(**columns)


def scenario(one: World, system: str, rules: Rules) -> Scenario:
    """A system of the evaluation on one model's cluster.

    All share the autoscaler of λScale's artifact: an instance for as many waiting batches as a node has GPUs, none
    while some start, and no idle one once nobody waits. They differ in how weights come: at once (ideal), from the
    host's memory or SSD (ServerlessLLM), or from other nodes, and from SSD where there is none (the rest).
    """
    group = Group(
        model=MODEL,
        count=rules.replicas,
        engine=_ONE_AT_A_TIME,
        step=_step(one.token_s),
        kv_tokens=1_000_000,
        limit=1,
        autoscaler=Autoscaler(policy="queue", parameters={"waiting": one.gpus}, most=one.nodes),
        start_up=StartUp(weights=_weights(one, system, rules)),
    )
    pool = Pool(
        hosts=one.nodes,
        accelerators=one.gpus,
        tick_s=rules.tick_s,
        ssd_bytes_per_s=one.model.weight_bytes / one.ssd_s,
        cache_bytes=0.0 if rules.cache_s is None else math.inf,
    )
    return Scenario(groups=(group,), pool=pool)


def run_on(
    context: Context, one: World, system: str, rules: Rules, table: pl.DataFrame, until_s: float = math.inf
) -> Run:
    """Serve batches by one system, on the backend that is asked, to the end or until some time."""
    backend = simulate if context.backend == "simpy" else None
    asked = scenario(one, system, rules).model_copy(update={"until_s": until_s})
    return serve(asked, table, seed=context.seed, backend=backend)


def waits_s(run: Run) -> np.ndarray:
    """Seconds from each batch's arrival to its first tokens."""
    return (run.requests["first_token_s"] - run.requests["arrival_s"]).to_numpy()


def _step(seconds: float) -> StepForm:
    return StepForm(compute=(seconds, 0.0, 0.0, 0.0, 0.0), source="recorded by λScale's authors", status="published")


def _weights(one: World, system: str, rules: Rules) -> Weights:
    size = one.model.weight_bytes
    about = {"bytes": size, "dram_bytes_per_s": size / one.memory_s, "source": system, "status": "computed"}
    about["ttl_s"] = math.inf if rules.cache_s is None else rules.cache_s
    if system == IDEAL:
        return Weights(path="ideal", **about)
    if system == SERVERLESSLLM:
        return Weights(path="tiers", **about)
    if system == LAMBDASCALE and rules.cache_s is not None:
        about |= {"memory_first": True, "hosts_send": rules.hosts_send, "pinned": rules.pinned}
    return Weights(path="multicast", multicast=_multicast(one, system, rules), **about)


def _multicast(one: World, system: str, rules: Rules) -> Multicast:
    most = one.nodes - 1
    if system != LAMBDASCALE:
        schedule, link = ("faasnet_tree", one.tree) if system == FAASNET else ("ring_broadcast", one.cost)
        plans = _baseline_plans(one, system, most)
        return Multicast(schedule=schedule, bytes_per_s=link.bytes_per_s, blocks=BLOCKS * PARTS, plans=plans)
    shape = ScaleOut(
        sources=1, targets=1, blocks=BLOCKS, parts=PARTS, variant=rules.variant, weight_bytes=one.model.weight_bytes,
        bytes_per_s=one.cost.bytes_per_s, alpha_s=one.cost.alpha_s,
    )  # fmt: skip
    pace = Speed(token_s=one.token_s, stages=BLOCKS, overhead_s=rules.overhead_s)
    plans = multicast_plans(shape, most, most) + _warm_plans(one)
    if not rules.early:
        plans = tuple(plan.model_copy(update={"forms_s": None, "pipelines": None}) for plan in plans)
    return Multicast(
        schedule="binomial_pipeline",
        bytes_per_s=one.cost.bytes_per_s,
        alpha_s=one.cost.alpha_s,
        blocks=BLOCKS * PARTS,
        plans=plans,
        piped_step=_step(pace.piped_s),
        switch=rules.switch,
    )


def _warm_plans(one: World) -> tuple[MulticastPlan, ...]:
    """Nodes that load from their hosts, by execution blocks in rotated strides."""
    size = one.model.block_bytes(BLOCKS)
    return warm_plans(size, sum(size) / one.memory_s, one.nodes - 1)


@functools.lru_cache(maxsize=64)
def _baseline_plans(one: World, system: str, most: int) -> tuple[MulticastPlan, ...]:
    """One source sends to all targets, however many replicas there are."""
    assert system in (FAASNET, NCCL)
    done = {count: tuple(complete_s(one, system, count).tolist()) for count in range(1, most + 1)}
    return tuple(
        MulticastPlan(sources=s, targets=t, complete_s=done[t]) for s in range(1, most + 1) for t in range(1, most + 1)
    )
