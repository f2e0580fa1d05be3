"""Beyond the paper: a cap on how far ahead of its reader a batch may get."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.pools import METRICS, promise, serve
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.monotone import monotone
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.pooling.model.lowered import DONE, Outcome
from workbench.results import Verdict

CAPS_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 1000.0)
QUICK_S = (1.0, 4.0, 1000.0)
NONE_S = 1000.0
"""A cap that no request reaches."""
SHOWN = np.concatenate([np.linspace(0, 0.9, 40), np.linspace(0.91, 1.0, 30)])


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["caps"].filter(pl.col("backend") == tables["caps"]["backend"][0])
    mean = table.group_by("cap_s").agg(pl.col("lead_p95_s", "gap_p99_s", "token").mean()).sort("cap_s")
    texts = []
    for row in mean.to_dicts():
        cap = "no cap" if row["cap_s"] >= NONE_S else f"a cap of {row['cap_s']:g} s"
        held, gap = f"{row['lead_p95_s']:.1f} s in hand", f"{row['gap_p99_s']:.2g} s between tokens"
        texts.append(f"{cap} readers have up to {held} (P95) and wait up to {gap} (P99)")
    return f"With {texts[0]}; with {texts[-1]}."


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["caps"]
    table = table.filter(pl.col("backend") == table["backend"][0])
    runs = [part.sort("cap_s") for _, part in table.group_by("replication", maintain_order=True)]
    blame = "one draw of requests for all caps"
    return [
        monotone(draft, "what a reader has in hand grows with the cap", [run["lead_p95_s"].to_list() for run in runs],
                 blame=blame),
    ]  # fmt: skip


@experiment(
    "aegaeon/buffer-cap",
    title="How far ahead of its reader may a request be?",
    question="If a batch pauses once all its readers have so many seconds in hand, what happens to gaps between "
    "tokens, to switches and to promises?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 2.0, "simpy": 3.0},
    draw="pooling_beyond.caps",
    panels=("attainment", "lead", "gaps"),
    say=_say,
    stochastic=True,
    judges=(_judge,),
    agrees=(
        Agree("share of tokens in time", "caps", ("cap_s",), "token", {("compiled", "simpy"): (0, 0)}),
        Agree("P99 of gaps", "caps", ("cap_s",), "gap_p99_s", {("compiled", "simpy"): (0, 0)}),
    ),
)
def buffer_cap(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    models: Annotated[int, Par("Models", low=4, high=112, step=4, free=True, source="64 in the reruns")] = 48,
    rate_per_s: Annotated[
        float, Par("Requests of a model", "1/s", low=0.02, high=0.5, log=True, free=True, source="0.1 in Fig 11a")
    ] = 0.1,
    quota_s: pools.Quota = 4.0,
) -> dict[str, pl.DataFrame]:
    """Attainment, switches, seconds that readers have in hand, and gaps between tokens, by cap.

    A reader begins with the first token and takes one every 0.1 s; what has come and is not read yet is in hand. Gaps
    are those between tokens as they come, without a buffer at the client.
    """
    caps = (4.0,) if context.backend == "simpy" else QUICK_S if context.mode == "quick" else CAPS_S
    rows, gaps, known = [], [], []
    for cap_s in caps:
        context.tell(f"cap of {cap_s:g} s")
        run = serve(context, models, rate_per_s, 60.0, cluster=cluster, quota_s=quota_s, buffer_s=cap_s)
        lead_s, gap_s = _lead_and_gaps(run.outcome, 0.1)
        found = {
            "lead_p50_s": float(np.quantile(lead_s, 0.5)), "lead_p95_s": float(np.quantile(lead_s, 0.95)),
            "lead_max_s": float(lead_s.max()), "gap_p50_s": float(np.quantile(gap_s, 0.5)),
            "gap_p99_s": float(np.quantile(gap_s, 0.99)), "gap_max_s": float(gap_s.max()),
        }  # fmt: skip
        switches = len(run.outcome.switches) / max(run.span_s, 1e-9)
        rows.append({"cap_s": cap_s, **run.attainment(promise()), **found, "switches_per_s": switches})
        gaps += [
            {"cap_s": cap_s, "quantile": float(share), "gap_s": float(np.quantile(gap_s, share))} for share in SHOWN
        ]
        known += [(f"{name}, x = cap in s", cap_s, value, "s") for name, value in found.items()]
        known.append(("share of tokens in time, x = cap in s", cap_s, rows[-1]["token"], "1"))
    order = ["cap_s", *METRICS, *found, "switches_per_s"]
    return {"caps": pl.DataFrame(rows).select(order), "gaps": pl.DataFrame(gaps), "headline": headline(known)}


def _lead_and_gaps(out: Outcome, tbt_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Seconds in hand when each token comes, and gaps between tokens, of all requests that are done."""
    leads, gaps = [np.zeros(1)], [np.zeros(1)]
    for r in np.flatnonzero((out.status == DONE) & (out.made > 1)):
        times = out.token_s[out.token_at[r] : out.token_at[r + 1]]
        leads.append(times[0] + tbt_s * np.arange(1, times.size + 1) - times)
        gaps.append(np.diff(times))
    return np.concatenate(leads), np.concatenate(gaps)
