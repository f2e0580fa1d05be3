"""Whole models on each server or chains, when arrivals come in bursts, and when jobs slow each other down."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains import testbed
from workbench.catalogue.chains.responding import jobs_at
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.chains import (
    Composition,
    JobList,
    after_warm_up,
    bounds,
    chains_of,
    compose,
    dispatch_path,
    whole_models,
)
from workbench.errors import UserError
from workbench.queueing import Gamma

SYSTEMS = WHOLE, CHAINS = ("whole models", "chains")
JOBS = {"full": 5000, "quick": 2000}
SHARES = np.linspace(0.01, 1.0, 199)
MEAN_JOB = np.array([[1.0, 2048.0, 27.0]])
"""1, tokens in, and tokens out but the first, of the mean request of the paper's trace."""
ENDS = {"system": pl.String, "lower_s": pl.Float64, "upper_s": pl.Float64}
MEANS = {"system": pl.String, "response_s": pl.Float64, "wait_s": pl.Float64}
PATHS = {"system": pl.String, "share": pl.Float64, "response_s": pl.Float64}


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    if (means := tables.get("means")) is not None:
        if not len(means):
            return "Neither whole models nor chains keep up with these arrivals."
        each = means.group_by("system", maintain_order=True).agg(pl.col("response_s", "wait_s").mean())
        texts = [f"{mean:.3g} s with {system}, {wait:.2g} s of it waiting" for system, mean, wait in each.rows()]
        kind = "slow each other down" if parameters["contention"] else "do not slow each other down"
        return f"When gaps have a CV of {parameters['gaps_cv']:.3g} and jobs {kind}, one stays {'; '.join(texts)}."
    ends = tables["bounds"].select(*ENDS).unique(maintain_order=True)  # no replication differs
    texts = [f"{low:.3g} to {high:.3g} s with {system}" for system, low, high in ends.rows()]
    if not texts:
        return "Neither whole models nor chains keep up with these arrivals."
    return f"With Poisson arrivals and exponential sizes a job stays {' and '.join(texts)}."


@experiment(
    "chains/bursts",
    title="Whole model on each GPU, or chains, under bursts?",
    question="Do whole models or chains serve sooner as arrivals come in bursts, and as jobs slow each other down?",
    backends=("analytic", "compiled"),
    seconds={"analytic": 0.05, "compiled": 0.2},
    draw="chains_testbed.bursts",
    panels=("means", "distributions"),
    say=_say,
    stochastic=True,
    live=("compiled",),
)
def bursts(
    context: Context,
    *,
    cluster: testbed.Cluster = "server-chains-testbed",
    model: testbed.Served = "llama-2-7b",
    gaps_cv: Annotated[
        float,
        Par(
            "Burstiness: standard deviation over mean of the gaps (1: Poisson)", low=0.25, high=16, log=True,
            free=True, source="chosen: Poisson; the paper's trace has 13.15",
        ),
    ] = 1.0,
    arrival_rate_per_s: Annotated[
        float, Par("Arrivals", "1/s", low=0.1, high=20, log=True, free=True, source="the paper's trace: 2.57")
    ] = 2.57,
    contention: Annotated[
        bool, Par("Jobs slow each other down", free=True, source="inferred: PETALS batches none; the paper has it not")
    ] = True,
    round_trip_scale: Annotated[
        float, Par("Round trips, times", low=0.1, high=10, log=True, free=True, source="the Python artifact's list")
    ] = 1.0,
    reserved: Annotated[
        int, Par("Jobs reserved for (c)", low=1, high=60, step=1, status="published", source="the paper: c = 35")
    ] = 35,
    slices: testbed.Slices = "156/78 TFLOPS",
    work: testbed.Work = "as the scripts have it (0.86)",
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Response of jobs under JFFC: Theorem 4 for Poisson arrivals, and simulated with gamma gaps of any CV.

    Sizes are exponential and scale the mean request's seconds, as in the paper's simulation. With other gaps than
    Poisson ones, or where jobs slow each other down, the theorem's curves are a reference and bound nothing.
    """
    seen = testbed.bed(
        context, cluster, model, slices, work, JobList(np.zeros(1), MEAN_JOB, np.zeros((1, 2))), None
    )  # fmt: skip
    messages = MEAN_JOB[0, 0] + MEAN_JOB[0, 2]
    longer_s = seen.fleet.communication_s + messages * (round_trip_scale - 1) * seen.round_trip_s
    fleet = seen.fleet.model_copy(update={"communication_s": longer_s})
    made = {WHOLE: whole_models(fleet), CHAINS: compose(fleet, reserved)}
    if not any(one.chains for one in made.values()):
        raise UserError(
            f"With room for {reserved} jobs on each block no chain of these servers hosts the model; reserve for "
            "fewer, or take other servers."
        )
    kept = {system: one for system, one in made.items() if one.chains and arrival_rate_per_s < one.rate_per_s}
    if context.backend == "compiled":
        return _simulated(context, kept, arrival_rate_per_s, gaps_cv, contention)
    rows = []
    for system, one in kept.items():
        found = bounds(one.rates_per_s, one.capacities, arrival_rate_per_s)
        rows.append((system, found.response_lower_s, found.response_upper_s))
    known = [
        (f"Poisson/exp reference, {end}", system, value, "s")
        for system, *ends in rows
        for end, value in zip(("lower", "upper"), ends, strict=True)
    ]
    return {"bounds": pl.DataFrame(rows, schema=ENDS, orient="row"), "headline": headline(known)}


def _simulated(
    context: Context, kept: Mapping[str, Composition], rate: float, gaps_cv: float, contention: bool
) -> dict[str, pl.DataFrame]:
    """The same jobs through each; the first tenth of the time is left out."""
    jobs = jobs_at(
        context, rate, JOBS[context.mode], gaps=lambda mean_s: Gamma(mean_s=mean_s, scv=gaps_cv**2)
    )  # fmt: skip
    means, paths = [], []
    for system, one in kept.items():
        path = after_warm_up(dispatch_path(jobs, chains_of(one), contention=contention))
        response_s = path.finish_s - path.arrival_s
        means.append((system, float(response_s.mean()), float(path.wait_s.mean())))
        paths += [
            (system, share, value)
            for share, value in zip(SHARES.tolist(), np.quantile(response_s, SHARES).tolist(), strict=True)
        ]
    known = [("mean response, simulated", system, value, "s") for system, value, _ in means]
    return {
        "means": pl.DataFrame(means, schema=MEANS, orient="row"),
        "paths": pl.DataFrame(paths, schema=PATHS, orient="row"),
        "headline": headline(known),
    }
