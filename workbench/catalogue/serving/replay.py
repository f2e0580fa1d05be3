"""A trace on a number of instances: times of requests alone, by formula, and among all others, by replay."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.serving.common import Tp
from workbench.catalogue.spec import Agree, experiment
from workbench.catalogue.tracing import replayed
from workbench.errors import UserError
from workbench.latency import step_time
from workbench.profiles import Accelerator, Deployment, Model, check_fits
from workbench.serving import ENGINES, ROUTES, Group, Scenario, StepForm, serve, step_form
from workbench.serving.model.promises import time_per_output_token_s, time_to_first_token_s
from workbench.serving.simulated.run import simulate

SHARES = (*(k / 50 for k in range(1, 50)), 0.99, 0.995, 0.999)
ENGINE = ENGINES["continuous"]


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    rows = {row["backend"]: row for row in tables["kept"].to_dicts()}
    alone, best = rows.get("analytic"), next((row for name, row in rows.items() if name != "analytic"), None)
    count = "1 instance keeps" if parameters["instances"] == 1 else f"{parameters['instances']} instances keep"
    if best is None:
        return f"Alone, without any other request, {alone['both_kept']:.1%} of requests keep both promises."
    text = f"{count} both promises for {best['both_kept']:.1%} of {best['requests']:,} requests"
    if best["active_share"] is not None:
        text += f", working {best['active_share']:.0%} of the time"
    return text + (f"; without any other request it would be {alone['both_kept']:.1%}." if alone else ".")


@experiment(
    "serving/replay",
    title="A trace on your instances",
    question="How long do the requests of a trace wait on so many instances, and how long would each take alone?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.03, "compiled": 0.15, "simpy": 8.0},
    draw="served.times",
    panels=("ttft", "tpot"),
    say=_say,
    live=("compiled",),
    agrees=(Agree("time to the first token", "times", ("what", "share"), "seconds", {("compiled", "simpy"): (0, 0)}),),
)
def replay(
    context: Context,
    *,
    accelerator: Annotated[
        str, Par("Accelerator", profile="accelerator", source="chosen: the one most public measurements are about")
    ] = "h100-80gb-sxm",
    model: Annotated[str, Par("Model", profile="model", source="chosen: fits one accelerator")] = "llama-3-8b",
    tp: Tp = 1,
    trace: Annotated[
        str, Par("Trace", trace=True, free=True, source="chosen: the hour that serving papers replay most")
    ] = "azure-conv-2023",
    instances: Annotated[int, Par("Instances", low=1, high=64, step=1, source="chosen")] = 4,
    speed: Annotated[
        float, Par("Played so many times as fast", low=0.1, high=20, log=True, source="1: as it was recorded")
    ] = 1.0,
    dispatch: Annotated[
        str, Par("Who gets a request", choices=tuple(ROUTES), source="least-outstanding, as most routers do")
    ] = "least-outstanding",
    ttft_s: Annotated[
        float, Par("Promised TTFT", "s", low=0.05, high=30, log=True, source="chosen: about what readers wait for")
    ] = 1.0,
    tbt_s: Annotated[
        float, Par("Promised TPOT", "s", low=0.005, high=1, log=True, source="chosen: faster than people read")
    ] = 0.05,
) -> dict[str, pl.DataFrame]:
    """Quantiles of TTFT and TPOT, and the share of requests that keep both promises.

    Formula: each request alone on an instance, its prompt in chunks of the step's budget and its tokens one by one at
    their mean context; no dispatch can do better. Replay: all of them, batched continuously with paged KV.
    """  # fmt: skip
    one, kind, deployment = context.model(model), context.accelerator(accelerator), Deployment(tp=tp)
    form, kv_tokens = _hosted(one, kind, deployment)
    context.cite(f"step times of {one.name}, median error of the fit", form.median_error, "1", form.status, form.source)
    context.cite("KV of an instance", kv_tokens, "tokens", "computed", "memory less weights")
    table = replayed(context, trace).requests
    if context.mode == "quick":
        table = table.head(3000)
    table = table.with_columns(pl.col("arrival_s") / speed, model=pl.lit(one.name))
    fits = (table["prompt_tokens"] + table["output_tokens"]).to_numpy() <= kv_tokens
    if not fits.any():
        raise UserError(f"No request of {trace} fits the {kv_tokens:,} tokens of KV of an instance; take another TP.")
    if context.backend == "analytic":
        ttft, tpot = _alone(table, form)
        active = None
    else:
        group = Group(model=one.name, count=instances, step=form, kv_tokens=kv_tokens)
        backend = simulate if context.backend == "simpy" else None
        run = serve(Scenario(groups=(group,), dispatch=dispatch), table, seed=context.seed, backend=backend)
        ttft = time_to_first_token_s(run.lowered, run.outcome)
        tpot = time_per_output_token_s(run.outcome)
        span_s = float(np.nanmax(run.outcome.finish_s, initial=0.0))
        active = float(run.outcome.busy_s.sum()) / (instances * span_s) if span_s > 0 else 0.0
    asked, several = table["output_tokens"].to_numpy() > 0, table["output_tokens"].to_numpy() > 1
    whose = ", alone" if context.backend == "analytic" else ""
    times = pl.concat([_quantiles("TTFT", whose, ttft[asked & fits]), _quantiles("TPOT", whose, tpot[several & fits])])
    both = fits & (ttft <= ttft_s) & ((tpot <= tbt_s) | ~several)
    kept = {"both_kept": [float(both[asked].mean())], "requests": [int(asked.sum())], "active_share": [active]}
    return {
        "times": times,
        "kept": pl.DataFrame(kept, schema_overrides={"active_share": pl.Float64}),
        "headline": headline(curve_rows(times, "series", "share", "seconds", "s")),
    }


@functools.lru_cache(maxsize=16)
def _hosted(model: Model, kind: Accelerator, deployment: Deployment) -> tuple[StepForm, int]:
    """Step times and tokens of KV; an explorer asks for the same ones at every move of a slider."""
    fit = check_fits(model, kind, deployment)
    return step_form(step_time(model, kind, deployment), ENGINE.slots, ENGINE.budget), fit.kv_tokens


def _alone(table: pl.DataFrame, form: StepForm) -> tuple[np.ndarray, np.ndarray]:
    """TTFT and TPOT of each request without any other, float64[n] each."""
    prompt = np.maximum(table["prompt_tokens"].to_numpy().astype(float), 1)
    output = table["output_tokens"].to_numpy().astype(float)
    ttft, stored = np.zeros(prompt.size), np.zeros(prompt.size)
    while (stored < prompt).any():
        chunk = np.minimum(prompt - stored, min(ENGINE.budget, ENGINE.chunk))
        step = form.seconds(chunk, (stored + chunk) ** 2 - stored**2, 0.0, 1.0)
        ttft += np.where(chunk > 0, step, 0.0)
        stored += chunk
    return ttft, np.where(output > 1, form.seconds(0.0, 0.0, prompt + (output - 2) / 2, 1.0), 0.0)


def _quantiles(what: str, whose: str, seconds: np.ndarray) -> pl.DataFrame:
    seconds = seconds[~np.isnan(seconds)]
    values = np.quantile(seconds, SHARES) if seconds.size else np.full(len(SHARES), np.nan)
    return pl.DataFrame({"what": what, "series": what + whose, "share": SHARES, "seconds": values})
