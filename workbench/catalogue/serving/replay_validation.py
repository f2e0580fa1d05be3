"""A measured vLLM run, replayed: the same requests at the same times, beside what was measured for each of them."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.measured_run import SOURCE, measured_run, measured_state
from workbench.catalogue.parameters import Par
from workbench.catalogue.serving.measured_steps import measured_steps
from workbench.catalogue.spec import Keep, Match, experiment
from workbench.latency import overheads, step_time
from workbench.operating import simulate
from workbench.operating.choices import System
from workbench.profiles import cluster as make_cluster
from workbench.serving import Engine, StepForm, step_form

MEASURES = {"TTFT": "ttft_s", "TPOT": "tpot_s", "E2E": "e2e_s"}
STEPS = ("kernels", "measured kernels", "roofline")
QUANTILES = {"mean": None, "P99": 0.99}
_META = f"{SOURCE}; its meta.json"


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["errors"].filter(pl.col("statistic") == "mean")
    parts = [f"{row['measure']} {row['ours_s'] / row['measured_s'] - 1:+.1%}" for row in table.to_dicts()]
    requests = tables["requests"]
    within = ((requests["e2e_s"] / requests["measured_e2e_s"] - 1).abs() <= 0.05).mean()
    return (
        f"Replayed, the {len(requests)} measured requests differ on average by {', '.join(parts)}; {within:.0%} of "
        "them end within 5 % of their measured time."
    )


@experiment(
    "serving/replay-validation",
    title="Does a replay give the times that a real server gave?",
    question="Do 300 requests, replayed at their arrival times, wait and run as long as they did on vLLM?",
    backends=("compiled",),
    seconds={"compiled": 0.5},
    draw="serving.replay",
    panels=("requests", "server"),
    say=_say,
    matches=(Match((), note="step times come from kernels measured on the same GPU, not from this run"),),
    keep=Keep(backend="compiled"),
)
def replay_validation(
    context: Context,
    *,
    accelerator: Annotated[
        str, Par("Accelerator", profile="accelerator", status="published", source=_META)
    ] = "rtx-4090-24gb",
    model: Annotated[str, Par("Model", profile="model", status="published", source=_META)] = "llama-3.1-8b",
    step: Annotated[
        str,
        Par(
            "Step times",
            choices=STEPS,
            source="kernels: coefficients fitted to kernels measured on this GPU (half of the sizes held out); "
            "measured kernels: two rows fitted to whole steps added up from those kernels",
        ),
    ] = "measured kernels",
    step_overhead_s: Annotated[
        float, Par("Overhead of a step", "s", low=0, high=0.01, status="published", source="BLIS, 126 µs a step")
    ] = 126e-6,
    request_overhead_s: Annotated[
        float,
        Par(
            "Overhead of a request in a step", "s", low=0, high=1e-3, status="published", source="BLIS, 4 µs a request"
        ),
    ] = 4e-6,
    kv_tokens: Annotated[
        int,
        Par("Tokens of KV", low=8192, high=131_072, step=16, status="measured", source=f"{_META}: 2,588 blocks of 16"),
    ] = 41_408,
    budget: Annotated[
        int, Par("Tokens of a step", low=256, high=16_384, step=256, status="published", source=_META)
    ] = 2048,
    slots: Annotated[int, Par("Running requests", low=8, high=1024, status="published", source=_META)] = 256,
    reserve: Annotated[
        bool, Par("KV reserved for whole requests", source="off: vLLM takes blocks as tokens come, and evicts")
    ] = False,
) -> dict[str, pl.DataFrame]:
    """Time to first token, per output token and to the end, ours and measured, of each request; running and waiting
    requests each second.

    The engine batches continuously in chunks, pages its KV in blocks of 16 and recomputes what it evicts, as vLLM does;
    a prompt takes all its blocks when it is admitted.
    """
    measured, state = measured_run(), measured_state()
    context.cite("measured requests", len(measured), "1", "measured", SOURCE)
    form = _form(context, step, model, accelerator, step_overhead_s, request_overhead_s, slots, budget, kv_tokens)
    engine = Engine(slots=slots, budget=budget, chunk=budget, block_tokens=16, reserve=reserve)
    run = simulate(
        System(name="one vLLM server", engine=engine, source=_META),
        cluster=make_cluster(
            hosts=1, accelerators=1, accelerator=context.accelerator(accelerator), nic_bytes_per_s=1e9
        ),
        models=context.model(model),
        trace=measured.drop("ttft_s", "tpot_s", "e2e_s"),
        step=form,
        kv_tokens=kv_tokens,
    )
    out = run.served.outcome
    arrival_s = run.served.lowered.requests.arrival_s
    times = {
        "ttft_s": out.first_token_s - arrival_s,
        "tpot_s": (out.finish_s - out.first_token_s) / np.maximum(1, out.made - 1),
        "e2e_s": out.finish_s - arrival_s,
    }
    requests = measured.select(
        "request_id",
        "arrival_s",
        "prompt_tokens",
        "output_tokens",
        *(pl.col(name).alias(f"measured_{name}") for name in times),
    ).with_columns(**{name: pl.Series(values) for name, values in times.items()}, evictions=pl.Series(out.evictions))
    errors = pl.DataFrame(
        [
            (measure, statistic, _of(requests[column], share), _of(requests[f"measured_{column}"], share))
            for statistic, share in QUANTILES.items()
            for measure, column in MEASURES.items()
        ],
        schema=["measure", "statistic", "ours_s", "measured_s"],
        orient="row",
    )
    known = [(f"{row['statistic']} {row['measure']}", "", row["ours_s"], "s") for row in errors.to_dicts()]
    ours = _state(state["time_s"].to_numpy(), arrival_s, out.wait_s, out.finish_s)
    return {
        "requests": requests,
        "errors": errors,
        "server": pl.concat([ours, state.select(ours.columns).with_columns(whose=pl.lit("measured"))]),
        "headline": headline(known),
    }


def _of(values: pl.Series, share: float | None) -> float:
    return float(values.mean() if share is None else np.quantile(values.to_numpy(), share))


def _state(time_s: np.ndarray, arrival_s: np.ndarray, wait_s: np.ndarray, finish_s: np.ndarray) -> pl.DataFrame:
    """Requests that run and that wait at some instants; one that was evicted counts as running."""
    admitted_s = arrival_s + wait_s
    begun, ended, come = (
        np.searchsorted(np.sort(values), time_s, "right") for values in (admitted_s, finish_s, arrival_s)
    )
    return pl.DataFrame({"time_s": time_s, "running": begun - ended, "waiting": come - begun, "whose": "ours"})


def _form(
    context: Context, step: str, model: str, accelerator: str, step_s: float, request_s: float, slots: int, budget: int,
    kv_tokens: int,
) -> StepForm:  # fmt: skip
    if step == "measured kernels":
        form = measured_steps(kv_tokens, step_s, request_s)
    else:
        given = overheads(step_s=step_s, request_s=request_s)
        source = step_time(context.model(model), context.accelerator(accelerator), source=step, overheads=given)
        form = step_form(source, min(slots, 256), budget, 8192)
    context.cite("median error of the step times' fit", form.median_error, "1", "fitted", form.source)
    return form
