"""A burst served by instances that an autoscaler adds: what the experiments on start-up and detection share."""

import math
from typing import NamedTuple

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.tracing import replayed
from workbench.errors import UserError
from workbench.latency import step_time
from workbench.profiles import SLO, Deployment, Model, check_fits
from workbench.profiles import slo as make_slo
from workbench.serving import ENGINES, Group, Run, Scenario, metrics, serve, step_form
from workbench.serving.model import Autoscaler, Pool, StartUp, Weights, pool_on
from workbench.serving.model.promises import time_per_output_token_s, time_to_first_token_s
from workbench.serving.simulated.run import simulate
from workbench.workloads import Trace, superpose

PROMPT_TOKENS = 2048
"""Of the step by which an instance's prefill rate is told: a full budget of `ENGINES["continuous"]`."""


WAITING = (0.25, 0.5)
"""Shares of the promised TTFT that prompts may keep an instance busy, at least and at most, before others start."""


class Case(NamedTuple):
    """One model on one cluster under one load.

    Attributes:
        model, tp, slo: what is served, on how many accelerators, with which promise.
        table: the requests, their times scaled to the load.
        group, pool: of the scenario, without start-up and clock.
        times: how often each stamp of the trace is repeated.
    """

    model: Model
    tp: int
    slo: SLO
    table: pl.DataFrame
    group: Group
    pool: Pool
    times: int


def case(
    context: Context,
    cluster: str,
    model: str,
    tp: int,
    promise: tuple[float, float],
    trace: Trace,
    load: float,
    least: int,
) -> Case:
    """Instances on every place of a cluster, and a trace whose stamps are repeated to a share of what they can prefill.

    Parameters:
        promise: seconds of TTFT and of TBT.
        load: mean prompt tokens/s over what all places prefill together; at least each stamp once.
        least: instances that are always there.
    """
    hosts, shape = context.cluster(cluster), context.model(model)
    accelerator, deployment = hosts.host.accelerator, Deployment(tp=tp)
    step = step_time(shape, accelerator, deployment)
    engine, fit = ENGINES["continuous"], check_fits(shape, accelerator, deployment)
    rate = PROMPT_TOKENS / float(step.prefill_s(PROMPT_TOKENS))
    context.cite(
        f"prefill rate of {shape.name} on {tp} x {accelerator.name}", rate, "tokens/s", "computed", step.source
    )
    pool = pool_on(hosts, tp)
    places = pool.hosts * pool.places
    if least > places:
        raise UserError(f"{least} instances of {tp} accelerators do not fit {hosts.name}, which has {places} places.")
    span_s = float(trace.requests["arrival_s"][-1] - trace.requests["arrival_s"][0])
    if not span_s > 0:
        raise UserError(f"Trace {context.traces[-1]} has no span, so its load cannot be told; give a longer one.")
    mean = float(trace.requests["prompt_tokens"].sum()) / span_s
    times = max(1, round(load * places * rate / max(mean, 1e-9)))
    context.cite(
        f"repetitions of each stamp for {shape.name}", times, "1", "computed", f"{load:.0%} of {places} places"
    )
    table = (superpose(trace, times) if times > 1 else trace).requests.with_columns(model=pl.lit(shape.name))
    scaler = Autoscaler(
        policy="backlog",
        parameters={
            "prompt_tokens_per_s": rate,
            "blocks": fit.kv_tokens // engine.block_tokens,
            "lower_s": WAITING[0] * promise[0],
            "upper_s": WAITING[1] * promise[0],
        },
        least=least,
        down_step=1,
    )
    form = step_form(step)
    context.cite(
        f"step times of {shape.name}, median error of the fit", form.median_error, "1", form.status, form.source
    )
    for name, share in zip(("least", "most"), WAITING, strict=True):
        context.cite(f"{name} prefill waiting at an instance", share, "of the promised TTFT", "chosen", "chosen here")
    context.cite("weights of an idle instance kept", KEEP_S, "s", "published", "BlitzScale artifact: 333 ms for 8B")
    group = Group(model=shape.name, count=least, engine=engine, step=form, kv_tokens=fit.kv_tokens, autoscaler=scaler)
    return Case(shape, tp, make_slo(ttft_s=promise[0], tbt_s=promise[1]), table, group, pool, times)


def burst(context: Context, asked: str, window_s: float) -> Trace:
    """The busiest window of a trace; quick runs take two minutes of it at most."""
    longest_s = min(window_s, QUICK_S) if context.mode == "quick" else window_s
    return replayed(context, asked, longest_s=longest_s)


def run_case(context: Context, one: Case, load_s: float, *, tick_s: float, scrape_s: float = 0.0) -> Run:
    """Serve a case whose new instances take `load_s` to load; warm ones are kept for a third of a second.

    Parameters:
        tick_s, scrape_s: between two decisions, and how old the load is that they see.
    """
    weights = Weights(path="fixed", fixed_s=load_s, keep_s=KEEP_S)
    start_up = StartUp(engine={"seconds": 0.0}, weights=weights)
    scenario = Scenario(
        groups=(one.group.model_copy(update={"start_up": start_up}),),
        pool=one.pool.model_copy(update={"tick_s": tick_s, "scrape_s": scrape_s}),
    )
    return serve(scenario, one.table, seed=context.seed, backend=simulate if context.backend == "simpy" else None)


QUICK_S = 120.0
KEEP_S = 1 / 3
"""How long the artifact of BlitzScale keeps weights of a drained 8B instance (333 ms)."""


def kept(run: Run, slo: SLO) -> dict[str, float]:
    """Shares of requests that keep the promised TTFT, TPOT, and both; mean TTFT; GPU seconds; scale-outs."""
    asked = run.lowered.requests.output > 0
    ttft = time_to_first_token_s(run.lowered, run.outcome)[asked]
    tpot = time_per_output_token_s(run.outcome)[asked]
    first, between = ttft <= float(slo.ttft_s), tpot <= float(slo.tbt_s)  # a time that never came is NaN: not kept
    return {
        "ttft_kept": float(first.mean()),
        "tbt_kept": float(between.mean()),
        "both_kept": float((first & between).mean()),
        "mean_ttft_s": float(pl.Series(ttft).fill_nan(None).mean() or math.nan),
        "gpu_s": metrics(run)["gpu_allocated_s"],
        "loads": float(len(run.scaleouts)),
    }
