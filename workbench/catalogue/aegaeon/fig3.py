"""Figure 3: tokens against the staircase of their deadlines, and what four definitions make of a stall."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.results import Verdict
from workbench.serving.kernels.attainment import fill_in_time, fill_time_kept

SERIES = "attainment of the example, qos-artifact metric"
EXAMPLE = (3.0, 6.0, 7.0, 8.0)
X = "token times 3, 6, 7, 8; TTFT 3, TBT 2"
EARLY, LATE = "a stall at the first tokens", "the same stall later"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = dict(tables["stalls"].filter(pl.col("definition") == "token").select("case", "attainment").iter_rows())
    return (
        f"A stall of {parameters['stall_s']:g} s leaves {table[EARLY]:.0%} of the tokens in time when it comes first, "
        f"and {table[LATE]:.0%} when a buffer has been earned; of the artifact's own example its definition keeps 5/8."
    )


def _judge(draft: Draft) -> list[Verdict]:
    table = dict(
        draft.tables["stalls"].filter(pl.col("definition") == "token").select("case", "attainment").iter_rows()
    )
    held = table[EARLY] < 1 <= table[LATE]
    return [
        Verdict(
            claim="an early stall is visible, a late one is absorbed by the buffer",
            published="shape of Fig 3",
            ours=f"{table[EARLY]:.2f}, {table[LATE]:.2f}",
            strength="ordering",
            verdict="reproduced"
            if held and draft.comparable
            else "not comparable"
            if not draft.comparable
            else "differs",
            reason=draft.reason
            or "share of tokens in time, early and late"
            + ("" if held else ". Assumed here: the pace at which the buffer is earned"),
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "aegaeon/fig3",
    title="When is a token late?",
    question="What do four definitions of attainment make of a stall, early or late?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="pooling_formulas.staircase",
    panels=("tokens", "definitions"),
    say=_say,
    judges=(_judge,),
)
def fig3(
    context: Context,
    *,
    ttft_s: Annotated[float, Par("Time to the first token", "s", low=0.1, high=30, log=True, source="chosen")] = 2.0,
    tbt_s: Annotated[float, Par("Time between tokens", "s", low=0.01, high=1, log=True, source="chosen")] = 0.1,
    step_s: Annotated[float, Par("Step", "s", low=0.002, high=0.5, log=True, source="chosen: n = 4")] = 0.025,
    stall_s: Annotated[float, Par("Stall", "s", low=0, high=20, step=0.1, source="chosen")] = 4.0,
    tokens: Annotated[int, Par("Tokens", low=10, high=400, step=10, source="chosen")] = 100,
    late: Annotated[int, Par("Tokens before the late stall", low=1, high=390, source="chosen")] = 60,
) -> dict[str, pl.DataFrame]:
    """Times of tokens and their deadlines with the stall after the first token and after many; attainment of both, and
    of the example in the artifact's code."""
    first_s = 0.8 * ttft_s
    cases = {
        EARLY: _times(tokens, first_s, step_s, stall_s, 1),
        LATE: _times(tokens, first_s, step_s, stall_s, min(late, tokens - 1)),
    }
    rows = [
        {"case": case, "token": k, "time_s": time_s, "due_s": ttft_s + k * tbt_s}
        for case, times in cases.items()
        for k, time_s in enumerate(times.tolist())
    ]
    stalls = [
        {"case": case, "definition": name, "attainment": value}
        for case, times in cases.items()
        for name, value in _kept(times, ttft_s, tbt_s).items()
    ]
    example = _kept(np.array(EXAMPLE), 3.0, 2.0)
    known = [(SERIES, X, example["qos-artifact"], "1")]
    known += [(f"attainment, {row['definition']}", row["case"], row["attainment"], "1") for row in stalls]
    stalls += [{"case": "the artifact's example", "definition": name, "attainment": v} for name, v in example.items()]
    return {"tokens": pl.DataFrame(rows), "stalls": pl.DataFrame(stalls), "headline": headline(known)}


def _times(tokens: int, first_s: float, step_s: float, stall_s: float, after: int) -> np.ndarray:
    times = first_s + step_s * np.arange(tokens)
    times[after:] += stall_s
    return times


def _kept(times: np.ndarray, ttft_s: float, tbt_s: float) -> dict[str, float]:
    """Attainment of one request by each definition."""
    at, arrival = np.array([0, times.size]), np.zeros(1)
    in_time, kept = np.zeros(1, np.int64), np.zeros(1)
    fill_in_time(times, at, arrival, ttft_s, tbt_s, in_time)
    found = {}
    for name, reset in (("qos-artifact", 0), ("qos-reset", 1)):
        fill_time_kept(times, at, arrival, ttft_s, tbt_s, reset, kept)
        found[name] = float(kept[0])
    pace = (times[-1] - times[0]) / max(1, times.size - 1)
    return found | {"token": float(in_time[0]) / times.size, "request": float(times[0] <= ttft_s and pace <= tbt_s)}
