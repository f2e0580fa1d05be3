"""Beyond the paper: who is let in, so that what is promised is kept, and what wrong guesses of lengths do to that."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.pools import crossing, models_on, promise
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.pooling import PoolRun, market_trace, pooled, pooling_on
from workbench.pooling.model.lowered import REJECTED
from workbench.pooling.simulated import simulate
from workbench.results import Verdict

RULES = ("everybody", "estimates", "look-ahead")
LOADS = (16, 24, 32, 48, 64, 96)
QUICK = (16, 32, 64)
ERRORS = (0.0, 0.25, 0.5, 1.0, 2.0)
MARGINS = (1.0, 1.25, 1.5, 2.0)
ONE = "look-ahead"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["loads"].filter(pl.col("backend") == tables["loads"]["backend"][0])
    far = table.filter(pl.col("models") == table["models"].max())
    mean = far.group_by("rule", maintain_order=True).agg(pl.col("kept", "admitted", "broken").mean()).to_dicts()
    texts = [
        f"{row['kept']:.0%} of the requests are served as promised and {row['broken']:.0%} of the admitted are not "
        f"({row['rule']})"
        for row in mean
    ]
    return f"With {far['models'][0]} models on eight GPUs {', '.join(texts)}."


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["loads"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("rule") == ONE))
    broken = int(table["broken_requests"].sum())
    found = [
        Verdict(
            claim="with exact lengths no admitted request misses its promise",
            published="to be met",
            ours=float(broken),
            tolerance=(0.0, 0.0),
            strength="exact",
            verdict="not comparable" if not draft.comparable else "reproduced" if broken == 0 else "differs",
            reason=draft.reason
            or f"{broken} of {int(table['admitted_requests'].sum())} admitted requests"
            + (". Assumed here: lengths are known" if broken else ""),
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]
    least = table["of_feasible"].min()
    if not np.isnan(least):
        found.append(
            Verdict(
                claim="at least half of the feasible load is admitted",
                published="to be met",
                ours=float(least),
                tolerance=(0.5, float("inf")),
                strength="band",
                verdict="not comparable" if not draft.comparable else "reproduced" if least >= 0.5 else "differs",
                reason=draft.reason
                or "feasible is the offered load, at most that at which 90 % of the requests are "
                "served as promised without control"
                + ("" if least >= 0.5 else ". Assumed here: turns of 4 s"),
                mode=draft.mode,
                seeds=draft.seeds,
            )
        )
    return found


@experiment(
    "aegaeon/admission",
    title="Whom can a pool promise anything?",
    question="If requests are turned away where promises could not be kept, how many are, and what if their lengths "
    "are guessed wrong?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 8.0, "simpy": 1.0},
    draw="pooling_beyond.admission",
    panels=("kept", "broken", "errors"),
    say=_say,
    stochastic=True,
    judges=(_judge,),
    agrees=(
        Agree("requests served as promised", "loads", ("models", "rule"), "kept", {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def admission(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    rate_per_s: Annotated[
        float, Par("Requests of a model", "1/s", low=0.02, high=0.3, log=True, free=True, source="0.1 in Fig 11a")
    ] = 0.1,
    models: Annotated[
        int, Par("Models where lengths are guessed", low=8, high=96, step=8, free=True, source="chosen: overload")
    ] = 48,
    scale: Annotated[float, Par("Promise times", low=0.3, high=2, step=0.1, free=True, source="10 s and 0.1 s")] = 1.0,
    quota_s: pools.Quota = 4.0,
) -> dict[str, pl.DataFrame]:
    """Admitted, kept and broken promises by rule and load on three prefill and five decode GPUs, with exact lengths;
    and with guesses that are off by up to 200 %, for several safety margins.

    A promise is kept when every token comes by arrival + TTFT + i x TBT. *look-ahead* admits a request if a run of all
    that was admitted, nobody else coming, then breaks no promise that is not broken yet; *estimates* judges the prompt
    by the queue before it and decoding by the pace and length of a round. A guess is the length times (1 + e)^u, u
    uniform from -1 to 1; a margin multiplies it. In SimPy the requests that the compiled loop rejected are turned away.
    """
    options = {"cluster": cluster, "rate_per_s": rate_per_s, "scale": scale, "quota_s": quota_s}
    loads = QUICK if context.mode == "quick" else LOADS
    if context.backend == "simpy":
        run = _run(context, 32, ONE, **options)
        again = _run(context, 32, "everybody", refused=run.outcome.status == REJECTED, **options)
        rows = [{"models": 32, "rule": ONE, **_counts(again, scale), "of_feasible": float("nan")}]
        return {"loads": pl.DataFrame(rows), "headline": _known(rows)}
    rows = []
    for count in loads:
        for rule in RULES:
            context.tell(f"{count} models, {rule}")
            rows.append({"models": count, "rule": rule, **_counts(_run(context, count, rule, **options), scale)})
    feasible = _feasible(rows)
    rows = [row | {"of_feasible": row["admitted_per_s"] / min(row["offered_per_s"], feasible)} for row in rows]
    errors = []
    quick = context.mode == "quick"
    for error in ERRORS[::2] if quick else ERRORS:
        for margin in MARGINS[::3] if quick else MARGINS:
            context.tell(f"guesses off by {error:.0%}, margin {margin:g}")
            run = _run(context, models, ONE, error=error, margin=margin, **options)
            errors.append({"error": error, "margin": margin, **_counts(run, scale)})
    return {"loads": pl.DataFrame(rows), "errors": pl.DataFrame(errors), "headline": _known(rows)}


def _run(
    context: Context, count: int, rule: str, *, cluster: str, rate_per_s: float, scale: float, quota_s: float,
    error: float = 0.0, margin: float = 1.0, refused: np.ndarray | None = None,
) -> PoolRun:  # fmt: skip
    trace = market_trace(count, rate_per_s, 60.0, generator="poisson", seed=context.seed)
    output = trace.requests["output_tokens"].to_numpy()
    guess = output * (1 + error) ** context.random("guesses").uniform(-1, 1, output.size)
    pooling = pooling_on(
        context.cluster(cluster), prefill=3, decode=5, nodes=1, admission=rule, margin=margin, quota_s=quota_s,
        ttft_s=10.0 * scale, tbt_s=0.1 * scale,
    )  # fmt: skip
    return pooled(
        pooling, models_on(context, count, cluster), trace, backend=simulate if refused is not None else None,
        believed=np.maximum(1, np.rint(guess)).astype(np.int64),
        refused=None if refused is None else refused.astype(np.int64),
    )  # fmt: skip


def _counts(run: PoolRun, scale: float) -> dict[str, float]:
    status, whole = run.outcome.status, run.whole(promise(scale))
    admitted = status != REJECTED
    span_s = max(float(run.lowered.requests.arrival_s[-1]), 1e-9)
    return {
        "offered_per_s": status.size / span_s,
        "admitted": float(admitted.mean()),
        "admitted_per_s": float(admitted.sum()) / span_s,
        "rejected": float(1 - admitted.mean()),
        "broken": float((admitted & ~whole).sum() / max(1, admitted.sum())),
        "broken_requests": int((admitted & ~whole).sum()),
        "admitted_requests": int(admitted.sum()),
        "kept": float(whole.mean()),
        "kept_per_s": float(whole.sum()) / span_s,
    }


def _feasible(rows: list[dict[str, Any]]) -> float:
    """Requests a second at which 90 % are still served as promised when everybody is admitted."""
    free = [row for row in rows if row["rule"] == "everybody"]
    found = crossing([row["offered_per_s"] for row in free], [row["kept"] for row in free])
    return max(row["offered_per_s"] for row in free) if np.isnan(found) else found


def _known(rows: list[dict[str, Any]]) -> pl.DataFrame:
    known = []
    for row in rows:
        known.append((f"requests served as promised, {row['rule']}, x = models", row["models"], row["kept"], "1"))
        known.append((f"broken promises of the admitted, {row['rule']}, x = models", row["models"], row["broken"], "1"))
    return headline(known)
