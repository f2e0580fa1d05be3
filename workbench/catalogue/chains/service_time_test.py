"""Whether service times are exponential: those that a trace gives on each chain."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains import testbed
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.chains import chains_of, compose
from workbench.errors import UserError

PUBLISHED = "standard deviation over mean of the service times per chain"
BARE = "standard deviation over mean of the service times, no fixed term"
WHY = (
    "the scripts that drew this figure take it from a model or from preset samples (one adds 2.2 s to every server to "
    "bring the ratio down to about 0.76); what was measured is not known"
)
POINTS, SHOWN = 200, 4


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["chains"]
    low, high = table["spread"].min(), table["spread"].max()
    return (
        f"On {len(table)} chains the service times of the trace have a standard deviation of {low:.2f} to {high:.2f} "
        f"times their mean with {parameters['fixed_s']:g} s added to every server; exponential ones have 1."
    )


@experiment(
    "chains/service-time-test",
    title="Are service times exponential?",
    question="How do the times that requests of a trace take on each chain differ from exponential ones?",
    backends=("analytic",),
    seconds={"analytic": 0.2},
    draw="chains_testbed.service_times",
    say=_say,
    matches=(
        Match((PUBLISHED,), incomparable={"": WHY}),
        Match((BARE,), tolerance=0.15),
    ),
)
def service_time_test(
    context: Context,
    *,
    cluster: testbed.Cluster = "server-chains-testbed",
    model: testbed.Served = "llama-2-7b",
    trace: testbed.Replayed = testbed.TRACE,
    slices: testbed.Slices = "156/78 TFLOPS",
    work: testbed.Work = "as the scripts have it (0.86)",
    reserved: Annotated[
        int, Par("Jobs reserved for (c)", low=1, high=100, step=1, status="published", source="the paper: c = 35")
    ] = 35,
    fixed_s: Annotated[
        float,
        Par(
            "Added to every server of a job", "s", low=0.0, high=4.0, step=0.1, free=True,
            source="one early script adds 2.2 s, by its comment to bring the ratio to about 0.76",
        ),
    ] = 0.0,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Service time of each request on each chain without contention, and its spread."""
    jobs = testbed.jobs_of(context, trace, 10**9)
    seen = testbed.bed(context, cluster, model, slices, work, jobs, None)
    made = compose(seen.fleet, reserved)
    if not made.chains:
        raise UserError("No chain of these servers hosts all blocks; reserve for fewer jobs.")
    chains = chains_of(made, seen.times, seen.usual)
    rows, curves = [], []
    for k in range(chains.slots.size):
        seconds = jobs.work @ chains.seconds[k] + fixed_s * chains.hops[k]
        rows.append((k + 1, int(chains.hops[k]), float(seconds.mean()), float(seconds.std() / seconds.mean())))
        if k < SHOWN:
            ordered = np.sort(seconds)
            x = np.linspace(0.0, float(np.quantile(ordered, 0.995)), POINTS)
            share = np.searchsorted(ordered, x, "right") / ordered.size
            curves += [(f"chain {k + 1}", *pair) for pair in zip(x.tolist(), share.tolist(), strict=True)]
    first = rows[0][2]
    x = np.linspace(0.0, 6 * first, POINTS)
    curves += [("exponential", *pair) for pair in zip(x.tolist(), (1 - np.exp(-x / first)).tolist(), strict=True)]
    table = pl.DataFrame(rows, schema=["chain", "servers", "mean_s", "spread"], orient="row")
    known = [(PUBLISHED, "", float(table["spread"].mean()), "1")]
    if fixed_s == 0:
        known.append((BARE, "Azure trace", float(table["spread"].mean()), "1"))
    return {
        "chains": table,
        "curves": pl.DataFrame(curves, schema=["series", "service_s", "share"], orient="row"),
        "headline": headline(known),
    }
