"""The batching knee: what more requests at once gain in tokens a second and cost in time between tokens."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.errors import UserError
from workbench.latency import step_time
from workbench.profiles import check_fits
from workbench.queueing import batched_service
from workbench.serving import Engine, Group, Scenario, StepForm, lower
from workbench.serving.model import Lowered, Outcome, run_compiled
from workbench.serving.simulated.run import simulate

SHARES = (0.2, 0.4, 0.6, 0.8, 0.9)
"""Loads at which requests are simulated, over the largest that a full batch bears."""
MIDDLE = (0.2, 0.9)
"""Of the requests, those over which averages are taken."""
CURVE = tuple(round(0.02 * k, 2) for k in range(1, 49))
SOURCES = ("roofline", "kernels")
MUCH = 2**31 - 1
TBT, RATE = "time between tokens, x = share of the largest load", "tokens a second, x = share of the largest load"


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    row = tables["knee"].row(0, named=True)
    return (
        f"A step takes {row['fixed_s'] * 1e3:.3g} ms and {row['each_s'] * 1e3:.3g} ms more for each request, so "
        f"half of all tokens a second that batching can ever give are there at {row['fixed_s'] / row['each_s']:.0f} "
        f"requests at once; at most {row['slots']} give {row['full_tokens_per_s']:,.0f} tokens a second, "
        f"{row['gain']:.1f} times one alone, with {row['slowdown']:.1f} times its time between tokens."
    )


@experiment(
    "serving/throughput",
    title="Where does batching stop to pay?",
    question="How do tokens a second and the time between tokens grow with load when requests share decoding steps?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.1, "compiled": 0.3, "simpy": 6},
    draw="serving.throughput",
    panels=("load", "batch"),
    say=_say,
    stochastic=True,
    agrees=(
        Agree(
            "tokens a second of a batch", "batch", ("batch",), "tokens_per_s",
            {("analytic", "compiled"): (-1e-9, 1e-9)},
        ),
        Agree(
            "time between tokens", "load", ("share",), "tbt_s",
            {("analytic", "compiled"): (-0.08, 0.08), ("compiled", "simpy"): (0.0, 0.0)},
        ),
    ),
)  # fmt: skip
def throughput(
    context: Context,
    *,
    accelerator: Annotated[str, Par("Accelerator", profile="accelerator", free=True)] = "h100-80gb-sxm",
    model: Annotated[str, Par("Model", profile="model", free=True)] = "llama-3-8b",
    step: Annotated[
        str, Par("Step times", choices=SOURCES, free=True, source="roofline holds for any accelerator")
    ] = "roofline",
    context_tokens: Annotated[int, Par("Tokens a request has stored", low=64, high=16_384, log=True, free=True)] = 1024,
    output_tokens: Annotated[int, Par("Tokens a request asks for, mean", low=8, high=1000, free=True)] = 100,
    slots: Annotated[int, Par("Most requests at once", low=1, high=512, free=True)] = 128,
    requests: Annotated[int, Par("Requests simulated at each load", low=200, high=20_000, free=True)] = 4000,
) -> dict[str, pl.DataFrame]:
    """Tokens a second, time between tokens and mean batch against load and against the batch.

    An instance that decodes only: requests come at random (Poisson) with the same context and a geometric number of
    tokens. A step of n takes a + b n, through the source's times of one request and of a full batch. The formula is the
    birth-death chain of batched service; the engine serves whole tokens, step by step.
    """
    one, kind = context.model(model), context.accelerator(accelerator)
    room = check_fits(one, kind).kv_tokens // context_tokens
    if room < 1:
        raise UserError(
            f"{one.name} on {kind.name} has room for {check_fits(one, kind).kv_tokens:,} tokens of KV, fewer than the "
            f"{context_tokens:,} of one request; choose a shorter context or another accelerator."
        )
    most = min(slots, room)
    source = step_time(one, kind, source=step)
    alone_s = source.decode_s(1, context_tokens)
    full_s = source.decode_s(most, most * context_tokens) if most > 1 else 2 * alone_s
    each_s = (full_s - alone_s) / max(most - 1, 1)
    fixed_s = max(alone_s - each_s, 0.0)
    context.cite("step of one request", alone_s, "s", source.status, source.source)
    context.cite("largest batch", most, "1", "computed", "slots, or KV of so many requests that the memory holds")
    largest = most / (output_tokens * (fixed_s + each_s * most))
    tables = {"knee": _knee(fixed_s, each_s, most)}
    if context.backend == "analytic":
        rows = [_chain(share, share * largest, fixed_s, each_s, output_tokens, most) for share in (*CURVE, *SHARES)]
    else:
        serve = run_compiled if context.backend == "compiled" else simulate
        count = min(requests, 2000) if context.mode == "quick" else requests
        rows = []
        for number, share in enumerate(SHARES):
            context.tell(f"{share:.0%} of the largest load")
            rng = context.random(f"load {number}")
            arrival_s = np.cumsum(rng.exponential(1 / (share * largest), count))
            asked = rng.geometric(1 / output_tokens, count)
            out = serve(_lowered(arrival_s, asked, fixed_s, each_s, most))
            rows.append(_seen(share, share * largest, arrival_s, out))
    load = pl.DataFrame(rows).unique("share", keep="first", maintain_order=True).sort("share")
    tables["load"] = load
    if context.backend != "simpy":
        tables["batch"] = _batches(context.backend, fixed_s, each_s, most)
    known = curve_rows(load.with_columns(series=pl.lit(TBT)), "series", "share", "tbt_s", "s")
    known += curve_rows(load.with_columns(series=pl.lit(RATE)), "series", "share", "tokens_per_s", "tokens/s")
    return {**tables, "headline": headline(known)}


def _knee(fixed_s: float, each_s: float, most: int) -> pl.DataFrame:
    alone, full = fixed_s + each_s, fixed_s + each_s * most
    return pl.DataFrame(
        {
            "fixed_s": [fixed_s],
            "each_s": [each_s],
            "slots": [most],
            "full_tokens_per_s": [most / full],
            "gain": [most * alone / full],
            "slowdown": [full / alone],
        }
    )


def _chain(share: float, rate: float, fixed_s: float, each_s: float, steps: float, most: int) -> dict[str, float]:
    found = batched_service(rate, fixed_s, each_s, steps, most)
    service_s = found.mean_response_s - found.mean_wait_s
    return {
        "share": share,
        "requests_per_s": rate,
        "tokens_per_s": rate * steps,
        "tbt_s": service_s / steps,
        "batch": found.mean_running,
    }


def _seen(share: float, rate: float, arrival_s: np.ndarray, out: Outcome) -> dict[str, float]:
    """Averages over the middle of the run, without its filling and draining."""
    n, arrival_s = arrival_s.size, arrival_s - arrival_s[0]
    first, last = int(MIDDLE[0] * n), int(MIDDLE[1] * n)
    inside = slice(first, last)
    gaps = out.made[inside] - 1
    order = np.argsort(out.finish_s, kind="stable")
    begin_s, end_s = out.finish_s[order[[first, last]]]
    stay_s = np.minimum(out.finish_s, end_s) - np.maximum(arrival_s + out.wait_s, begin_s)
    return {
        "share": share,
        "requests_per_s": rate,
        "tokens_per_s": float(out.made[order[first:last]].sum() / (end_s - begin_s)),
        "tbt_s": float((out.finish_s - out.first_token_s)[inside].sum() / max(int(gaps.sum()), 1)),
        "batch": float(np.maximum(stay_s, 0).sum() / (end_s - begin_s)),
    }


def _batches(backend: str, fixed_s: float, each_s: float, most: int) -> pl.DataFrame:
    """Tokens a second and time between tokens of a batch that never changes, by formula or by the engine."""
    sizes = np.unique(np.geomspace(1, most, 24).astype(int))
    if backend == "analytic":
        step_s = fixed_s + each_s * sizes
    else:
        tokens = 8
        step_s = np.array(
            [
                run_compiled(_lowered(np.zeros(size), np.full(size, tokens), fixed_s, each_s, most)).iteration_end_s[-1]
                / tokens
                for size in sizes
            ]
        )
    return pl.DataFrame({"batch": sizes, "tokens_per_s": sizes / step_s, "tbt_s": step_s})


def _lowered(arrival_s: np.ndarray, output: np.ndarray, fixed_s: float, each_s: float, most: int) -> Lowered:
    """One instance that takes `most` requests at once, each with a prompt of one token; KV is no matter here."""
    engine = Engine(slots=most, budget=MUCH, chunk=MUCH, block_tokens=2**20, reserve=True)
    form = StepForm(compute=(fixed_s, 0.0, 0.0, 0.0, each_s))
    table = pl.DataFrame(
        {"model": ["one"] * arrival_s.size, "arrival_s": arrival_s, "prompt_tokens": 1, "output_tokens": output}
    )
    return lower(Scenario(groups=(Group(model="one", engine=engine, step=form, kv_tokens=2**40),)), table)
