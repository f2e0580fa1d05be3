"""Figure 8 by the serving engine: 50 batches wait when the scale-out begins, and new nodes are watched."""

from typing import Any

import numpy as np

from workbench.catalogue.context import Context
from workbench.catalogue.lambdascale.replaying import Rules, batches, run_on
from workbench.catalogue.lambdascale.systems import BATCH, World
from workbench.serving import Run

WAITING = 50
"""Batches that are put in line at once when the scale-out starts, in the artifact's test of fixed scaling."""

BEGIN_S = 1.0
"""The first decision of the autoscaler, at which the scale-out begins."""

STEPS_A_POINT, STEPS_AT_END = 4, 16
"""Decoding steps that a point of the curve covers, and over which the final level is taken."""

Rows = list[dict[str, Any]]


def watched(
    context: Context, one: World, system: str, k: int, overhead_s: float, variant: str, switch: str
) -> tuple[Rows, dict[str, float]]:
    """Tokens per second of the new nodes, and their first tokens, last change and plateau."""
    rules = Rules(k, BEGIN_S, None, overhead_s, variant, switch)
    run = run_on(context, one, system, rules, batches(np.zeros(WAITING)))
    loads = run.outcome.loads[run.outcome.loads[:, 0] == BEGIN_S]
    end_s, piped_s = loads[:, 1] - BEGIN_S, loads[:, 8] - BEGIN_S
    made_s = steps_of(run, new_rows(run))
    last_s, width = float(end_s.max()), STEPS_A_POINT * one.token_s
    begins_s = last_s + 0.5 * one.token_s  # half a step late, so that no step ends on an edge
    at_end = (made_s > begins_s) & (made_s <= begins_s + STEPS_AT_END * one.token_s)
    final = float(at_end.sum()) / STEPS_AT_END / one.token_s
    counts = np.bincount((made_s / width).astype(int))
    shown = int(1.3 * last_s / width) + 2
    rates = [
        {"time_s": (place + 0.5) * width, "tokens_per_s": BATCH * count / width}
        for place, count in enumerate(counts[:shown].tolist())
    ]
    piped = ~np.isnan(piped_s)
    in_pipelines = float((end_s - piped_s)[piped].sum())
    before = float(np.sum(made_s < last_s)) / in_pipelines * piped.sum() if in_pipelines else 0.0
    start = {
        "first_s": float(made_s.min()),
        "last_s": last_s,
        "final_per_s": BATCH * final,
        "plateau_share": before / final if final else 0.0,
        "plateau_s": last_s - float(piped_s[piped].min()) if piped.any() else 0.0,
    }
    return rates, start


def new_rows(run: Run) -> np.ndarray:
    """The instances that begin to load at the first decision, int64[n]."""
    loads = run.outcome.loads
    return loads[loads[:, 0] == BEGIN_S, 2].astype(np.int64)


def steps_of(run: Run, rows: np.ndarray) -> np.ndarray:
    """Ends of all steps of some instances, from the begin of the scale-out; a batch makes its tokens in each."""
    out = run.outcome
    parts = [out.iteration_end_s[out.iteration_at[row] : out.iteration_at[row + 1]] for row in rows]
    return np.sort(np.concatenate(parts)) - BEGIN_S
