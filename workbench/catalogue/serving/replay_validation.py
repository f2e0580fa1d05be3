"""A measured vLLM run, replayed: the same requests at the same times, beside what was measured for each of them."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

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
from workbench.profiles import Accelerator, Model, check_fits
from workbench.profiles import cluster as make_cluster
from workbench.serving import Engine, Run, StepForm, step_form
from workbench.serving.model import Outcome

MEASURES = {"TTFT": "ttft_s", "TPOT": "tpot_s", "E2E": "e2e_s"}
STEPS = ("kernels", "measured kernels", "roofline")
QUANTILES = {"mean": None, "P99": 0.99}
OTHERS_KV = 54_400
"""What LLMServingSim takes where nobody measured it (its docs/validation.md)."""
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
    panels=("requests", "server", "changes"),
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
    requests each second; and how far the means are off when one thing is changed.

    The engine batches continuously in chunks, pages its KV in blocks of 16 and recomputes what it evicts, as vLLM does;
    a prompt takes all its blocks when it is admitted.
    """
    measured, state = measured_run(), measured_state()
    context.cite("measured requests", len(measured), "1", "measured", SOURCE)
    given = _Server(
        context.model(model), context.accelerator(accelerator), step, step_overhead_s, request_overhead_s, kv_tokens,
        budget, slots, reserve,
    )  # fmt: skip
    form = _form(given)
    context.cite("median error of the step times' fit", form.median_error, "1", "fitted", form.source)
    out = _served(given, measured).outcome
    arrival_s = measured["arrival_s"].to_numpy()
    requests = measured.select(
        "request_id", "arrival_s", "prompt_tokens", "output_tokens",
        *(pl.col(name).alias(f"measured_{name}") for name in MEASURES.values()),
    ).with_columns(evictions=pl.Series(out.evictions), **_times(out, arrival_s))  # fmt: skip
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
    changes = []
    for name, changed in given.changes().items():
        context.tell(f"changed: {name}")
        times = _times(_served(changed, measured).outcome, arrival_s)
        changes += [
            (name, measure, float(times[column].mean() / measured[column].mean() - 1))
            for measure, column in MEASURES.items()
        ]
    return {
        "requests": requests,
        "errors": errors,
        "server": pl.concat([ours, state.with_columns(whose=pl.lit("measured")).select(ours.columns)]),
        "changes": pl.DataFrame(changes, schema=["change", "measure", "error"], orient="row"),
        "headline": headline(known),
    }


class _Server(NamedTuple):
    """What serves in one replay."""

    model: Model
    accelerator: Accelerator
    step: str
    step_s: float
    request_s: float
    kv_tokens: int
    budget: int
    slots: int
    reserve: bool

    def changes(self) -> dict[str, "_Server"]:
        """The same with one thing changed at a time."""
        room = check_fits(self.model, self.accelerator).kv_tokens
        changed = {
            f"KV by memory size: {room:,}": {"kv_tokens": room},
            f"KV: {OTHERS_KV:,} tokens": {"kv_tokens": OTHERS_KV},
            "KV all reserved": {"reserve": True},
            "no overheads": {"step_s": 0.0, "request_s": 0.0},
            "steps by all kernels": {"step": "kernels"},
            "steps by roofline": {"step": "roofline"},
        }
        return {"as here": self} | {name: self._replace(**change) for name, change in changed.items()}


def _served(server: _Server, measured: pl.DataFrame) -> Run:
    engine = Engine(
        slots=server.slots, budget=server.budget, chunk=server.budget, block_tokens=16, reserve=server.reserve
    )
    return simulate(
        System(name="one vLLM server", engine=engine, source=_META),
        cluster=make_cluster(hosts=1, accelerators=1, accelerator=server.accelerator, nic_bytes_per_s=1),
        models=server.model,
        trace=measured.drop(*MEASURES.values()),
        step=_form(server),
        kv_tokens=server.kv_tokens,
    ).served


def _times(out: Outcome, arrival_s: np.ndarray) -> dict[str, pl.Series]:
    tpot_s = (out.finish_s - out.first_token_s) / np.maximum(1, out.made - 1)
    ttft_s, e2e_s = out.first_token_s - arrival_s, out.finish_s - arrival_s
    return {"ttft_s": pl.Series(ttft_s), "tpot_s": pl.Series(tpot_s), "e2e_s": pl.Series(e2e_s)}


def _of(values: pl.Series, share: float | None) -> float:
    return float(values.mean() if share is None else np.quantile(values.to_numpy(), share))


def _state(time_s: np.ndarray, arrival_s: np.ndarray, wait_s: np.ndarray, finish_s: np.ndarray) -> pl.DataFrame:
    """Requests that run and that wait at some instants; one that was evicted counts as running."""
    admitted_s = arrival_s + wait_s
    begun, ended, come = (
        np.searchsorted(np.sort(values), time_s, "right") for values in (admitted_s, finish_s, arrival_s)
    )
    return pl.DataFrame({"time_s": time_s, "running": begun - ended, "waiting": come - begun, "whose": "ours"})


def _form(server: _Server) -> StepForm:
    if server.step == "measured kernels":
        return measured_steps(server.kv_tokens, server.step_s, server.request_s)
    given = overheads(step_s=server.step_s, request_s=server.request_s)
    source = step_time(server.model, server.accelerator, source=server.step, overheads=given)
    return step_form(source, min(server.slots, 256), server.budget, 8192)
