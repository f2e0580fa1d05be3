"""Whether printed numbers are possible: they lie within what inputs span that no source states."""

from collections.abc import Mapping, Sequence

import polars as pl

from workbench.catalogue.judging import Draft
from workbench.catalogue.spec import Assumption
from workbench.results import Verdict


def spanned(draft: Draft, systems: Sequence[str], metrics: Sequence[str], assumption: Assumption) -> list[Verdict]:
    """Which printed seconds lie within the spans of a run, system by system.

    Parameters:
        draft: with a table `spans` of system, metric and seconds, a row for each setting of what is not stated.
        systems, metrics: x and series of the printed numbers.
        assumption: what to blame for numbers that lie outside, with a run in which it is dropped.
    """
    if "spans" not in draft.tables or not draft.comparable:
        return []
    printed = {(row["x"], row["series"]): row["value"] for row in draft.published.iter_rows(named=True)}
    spans, moved = (_ends(tables) for tables in (draft.tables, draft.rerun(assumption.change)))
    change = ", ".join(f"{name} = {value}" for name, value in assumption.change.items())
    found = []
    for system in systems:
        values = {metric: printed[system, metric] for metric in metrics if (system, metric) in printed}
        outside = [metric for metric, value in values.items() if not _inside(value, spans[system, metric])]
        texts = [_beside(metric, values[metric], spans[system, metric]) for metric in outside]
        then = sum(_inside(value, moved[system, metric]) for metric, value in values.items())
        found.append(
            Verdict(
                claim=f"the seconds of {system} are possible with what is not stated",
                published=f"{len(values)} numbers",
                ours=f"{len(values) - len(outside)} of {len(values)} within what FLOP counts and rates of slices span",
                strength="band",
                verdict="differs" if outside else "reproduced",
                reason=f"outside: {'; '.join(texts) or 'none'}. Assumed here: {assumption.text}; with {change} "
                f"{then} of {len(values)} are inside",
                mode=draft.mode,
                seeds=draft.seeds,
                trace=draft.trace,
            )
        )
    return found


def _ends(tables: Mapping[str, pl.DataFrame]) -> dict[tuple[str, str], tuple[float, float]]:
    """By system and metric, the least and the most seconds over the settings."""
    ends = tables["spans"].group_by("system", "metric").agg(low=pl.col("seconds").min(), high=pl.col("seconds").max())
    return {(system, metric): (low, high) for system, metric, low, high in ends.rows()}


def _inside(value: float, ends: tuple[float, float]) -> bool:
    return ends[0] <= value <= ends[1]


def _beside(metric: str, value: float, ends: tuple[float, float]) -> str:
    return f"{metric} {value:g} s, ours {ends[0]:.3g} to {ends[1]:.3g} s"
