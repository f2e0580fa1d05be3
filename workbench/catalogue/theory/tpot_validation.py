"""Time per output token of whole servers: five coefficients against end-to-end points of four engines."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft, against_measurements
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.catalogue.theory.latency_validation import measured_or_recorded
from workbench.errors import MissingData
from workbench.latency.validation import tpot_errors, tpot_points
from workbench.results import Reading, Verdict, read_against

_MEASURED = "measured TPOT"

WAYS = {
    "in_sample": ("in sample", 0.10),
    "tp_held_out": ("with a TP held out", 0.15),
    "clients_held_out": ("with a number of clients held out", 0.15),
}
GROUP = ("accelerator", "engine", "precision", "model")


def name_of_group(row: Mapping[str, Any]) -> str:
    """One group in words."""
    return f"{row['model']} {row['precision']} on {row['accelerator']}, {row['engine']}"


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["servers"].filter(~pl.col("reported_only"))
    parts = [
        f"{table[f'{way}_error'].median():.1%} {words} (worst {table[f'{way}_error'].max():.1%})"
        for way, (words, _) in WAYS.items()
    ]
    return (
        f"Five coefficients a group miss the time per output token of {len(table)} groups of servers by "
        f"{', '.join(parts)}; the roofline with nothing fitted by {table['roofline_error'].drop_nulls().median():.0%}."
    )


def _judge(draft: Draft) -> list[Verdict]:
    found = []
    for row in draft.tables["servers"].to_dicts():
        for way, (words, target) in WAYS.items():
            error = row[f"{way}_error"]
            claim = f"{name_of_group(row)}: median error of TPOT {words}"
            if error is not None:
                found.append(_verdict(draft, row, claim, error, row[f"{way}_signed"], target, way))
            elif way == "in_sample":
                why = f"{row['points']} points are too few for five coefficients"
                found.append(against_measurements(draft, claim, _MEASURED, "", target, "not possible", why))
    return found


def _verdict(
    draft: Draft, row: dict[str, Any], claim: str, error: float, signed: float, target: float, way: str
) -> Verdict:
    reading: Reading = read_against(error, None, 0.0, target)
    why = f"signed {signed:+.1%}, over {row['points']} points"
    if row["reported_only"]:
        reading, why = "not comparable", f"reported only: no profile of this accelerator is held; {why}"
    elif reading == "reproduced":
        how = "fitted to these points" if way == "in_sample" else "the other points of the group were fitted to"
        reading, why = "fitted", f"{how}; {why}"
    else:
        why += ". Assumed here: time grows linearly in weights, cache, prompts and clients read or served"
    return against_measurements(draft, claim, _MEASURED, error, target, reading, why)


@experiment(
    "theory/tpot-validation",
    title="Are whole servers as fast as the formula says?",
    question="Can five coefficients tell the time per output token of vLLM, SGLang and TensorRT-LLM?",
    backends=("analytic",),
    seconds={"analytic": 1.5},
    draw="latency.tpot",
    panels=("errors", "points"),
    say=_say,
    judges=(_judge,),
)
def tpot_validation(
    context: Context,
    *,
    held_out: Annotated[
        str, Par("Points: predicted", choices=tuple(words for words, _ in WAYS.values()))
    ] = "with a TP held out",
) -> dict[str, pl.DataFrame]:
    """Median errors of the time per output token per (GPU, engine, precision, model), and every point where it is held.

    TPOT = weights, keys and values, and prompts over bandwidth and arithmetic, each with a coefficient, plus a time per
    step and one per client. `roofline_error` has nothing fitted to these points.
    """
    servers = measured_or_recorded(context, "servers", tpot_errors)
    known = []
    for row in servers.to_dicts():
        known += [
            (f"median error of TPOT {words}", name_of_group(row), row[f"{way}_error"], "1")
            for way, (words, _) in WAYS.items()
            if row[f"{way}_error"] is not None
        ]
    tables = {"servers": servers, "headline": headline(known)}
    way = next(name for name, (words, _) in WAYS.items() if words == held_out)
    column = {"in_sample": "fitted_s", "tp_held_out": "tp_held_out_s", "clients_held_out": "clients_held_out_s"}[way]
    try:
        points = tpot_points()
    except MissingData:
        return tables  # the points themselves are not shipped
    shown = points.select(*GROUP, "tp", "clients", measured_s="tpot_s", predicted_s=column).drop_nulls()
    return {**tables, "points": shown.filter(pl.col("predicted_s").is_finite())}
