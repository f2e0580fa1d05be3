"""§5.4: how many requests must be sampled to know output lengths well enough."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.estimating import ORACLE, SUBTREE, TAG, estimate
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    TRACES,
    USUAL,
    Plan,
    Setup,
    Tuning,
    cite_sources,
    costs_for,
    limits,
    made,
    planned,
    random_of,
    rates_of,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import FEEDBACK, VIDEO, Main, On, Requests, Scan, Served, Video
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Assumption, Match, experiment

SHARES = (0.001, 0.01, 0.1, 1.0)
QUICK = 50_000
SAMPLES = 5
RATIO = "throughput with 1 % sampled over 100 % sampled"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["sampling"].filter((pl.col("replication") == 0) & (pl.col("way") == SUBTREE)).sort("sampled")
    low, high = table.row(0, named=True), table.row(-1, named=True)
    return (
        f"With {low['sampled'] * 100:g}% of the requests sampled the run reaches {low['share']:.1%} of the practical "
        f"optimum, with {high['sampled'] * 100:g}% {high['share']:.1%}."
    )


@experiment(
    "blendserve/sampling",
    title="How many samples are enough?",
    question="Output lengths are guessed from sampled requests of the same subtree: how many must be sampled?",
    backends=("compiled",),
    seconds={"compiled": 6},
    draw="blending_maps.sampling",
    panels=("share", "error"),
    say=_say,
    stochastic=True,
    matches=(
        Match(("share of requests sampled by default",),
              incomparable={"": "a parameter of these runs, no result of them"}),
        Match((RATIO,), assumptions=(
            Assumption("output lengths of videos are set beforehand", {"known": False}),)),
    ),
)  # fmt: skip
def sampling(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    main: Main = "burstgpt-like",
    trace: Annotated[str, Par("Density and sharing of", choices=tuple(TRACES), free=True, source="chosen")] = "Trace#1",
    requests: Requests = "400,000",
    shares: Annotated[
        tuple[float, ...],
        Par("Shares sampled", low=0.0001, high=1.0, free=True, source="chosen around the paper's 1 %"),
    ] = SHARES,
    known: Annotated[
        bool, Par("Videos' lengths are known", status="published", source="ASPLOS'26 paper §5.1: set beforehand")
    ] = True,
    spread: Annotated[
        float,
        Par(
            "Outputs of the compute source vary, times their own",
            low=0.1,
            high=3.0,
            step=0.1,
            status="fitted",
            source="1: as the source, see its lengths",
        ),
    ] = 1.0,
    video_tokens: Video = VIDEO,
    scan: Scan = FEEDBACK,
) -> dict[str, pl.DataFrame]:
    """Share of the practical optimum and error of the estimates, by share sampled; beside it tags and true lengths.

    An error is the sum of all misses over the sum of all outputs, of the run's own sample and of four more.
    """
    costs = costs_for(context, model, accelerator)
    cite_sources(context, main)
    density, ratio = TRACES[trace]
    tuning = Tuning(spread=spread, video=video_tokens)
    setup = Setup(costs, main, density, ratio, size_of(context, requests, QUICK), context.seed, -1, tuning)
    pool, rates = made(setup).mix.pool, rates_of(context, accelerator)
    engine, best = rates.engine(costs), pool.tokens / limits(setup, rates).practical_s
    rows = []
    for way, sampled in [*((SUBTREE, share) for share in sorted(shares)), (TAG, 0.01), (ORACLE, 1.0)]:
        context.tell(f"{way}, {sampled:.2%} sampled")
        plan = USUAL._replace(way=way, sampled=sampled, known=known)
        run = served(setup, BLEND, plan, scan)
        errors = _errors(setup, plan)
        rate = run.throughput(pool, engine)
        rows.append(
            {"way": way, "sampled": sampled, "tokens_per_s": rate, "share": rate / best, "swaps": run.swaps,
             "relative_error": errors[0], "error_low": min(errors), "error_high": max(errors)}
        )  # fmt: skip
    table = pl.DataFrame(rows)
    subtree = dict(table.filter(pl.col("way") == SUBTREE).select("sampled", "tokens_per_s").iter_rows())
    known_rows = [("share of the practical optimum, x = share sampled", row["sampled"], row["share"], "1")
                  for row in rows if row["way"] == SUBTREE]  # fmt: skip
    known_rows.append(("share of requests sampled by default", "", USUAL.sampled, "1"))
    if 0.01 in subtree and 1.0 in subtree:
        known_rows.append((RATIO, "", subtree[0.01] / subtree[1.0], "1"))
    return {"sampling": table, "headline": headline(known_rows)}


def _errors(setup: Setup, plan: Plan) -> list[float]:
    """How far the estimates of a plan are off, and those of other samples of the same size."""
    pool, tree = made(setup).mix.pool, made(setup).tree
    guesses = [planned(setup, plan)[0].output]
    for number in range(1, SAMPLES if plan.way == SUBTREE else 1):
        rng = random_of(setup.seed, f"sample {number}")
        guesses.append(estimate(pool, tree, plan.way, plan.sampled, rng, known=plan.known).output)
    return [float(np.abs(guess - pool.output).sum() / pool.output.sum()) for guess in guesses]
