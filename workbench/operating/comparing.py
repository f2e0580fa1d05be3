"""Two runs of the same requests, compared request by request."""

import html
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from workbench.errors import InputError
from workbench.operating.choices import promised
from workbench.operating.pool_run import PooledRun
from workbench.operating.run_handle import Run
from workbench.profiles import SLO
from workbench.queueing.statistics import Interval, batch_means, student_interval
from workbench.records import Record, shown
from workbench.serving.model.lowered import DONE

BATCHES = 20
"""Batches of consecutive requests over which one run's differences are averaged; few and long, since neighbours in a
queue wait together."""


class Comparison(Record):
    """What changes from run a to run b.

    Attributes:
        table: one row a measure: `measure, a, b, difference, low, high, requests, method`; the difference is b - a,
            paired, with its 95 % interval (empty where there are too few requests for one).
        sentence: the first measures in words.
    """

    table: pl.DataFrame
    sentence: str

    def __repr__(self) -> str:
        return f"<Comparison: {self.sentence}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        said, shown, below = html.escape(self.sentence), self.table, ""
        methods = shown["method"].unique()
        if len(methods) == 1:  # one for all: below the table, which is wide enough without it
            shown, below = shown.drop("method"), f"<p style='margin:4px 0'>low, high: {html.escape(methods[0])}</p>"
        return f"<p style='margin:4px 0'>{said}</p>{shown._repr_html_()}{below}"


def compare(run_a: Run | Sequence[Run], run_b: Run | Sequence[Run], slo: SLO | None = None) -> Comparison:
    """Does b serve the same requests faster or slower than a, and how sure is that?

    Of one run each, the differences of each request are averaged over batches of consecutive requests (20, fewer for
    short runs), whose means give Student's interval. Of several runs each (replications with other seeds or traces, in
    the same order), the differences of their means do.

    Parameters:
        run_a, run_b: one run each, or equally many; the requests of a pair are the same.
        slo: adds the attainment of a promise; that of the runs when None.

    Raises:
        InputError: runs of different requests, or not equally many.
    """
    first, second = (list(runs) if isinstance(runs, Sequence) else [runs] for runs in (run_a, run_b))
    if len(first) != len(second) or not first:
        raise InputError(f"are {len(first)} and {len(second)} runs", "give equally many", field="run_a, run_b")
    for name, runs in (("run_a", first), ("run_b", second)):
        for run in runs:
            if not isinstance(run, Run | PooledRun):
                raise InputError(f"is {shown(run)}", "give what wb.simulate returned", field=name)
    for one, other in zip(first, second, strict=True):
        _same_requests(one, other)
    slo = (first[0].slo or second[0].slo) if slo is None else promised(slo)
    rows = [
        _row(name, [(of(a), of(b)) for a, b in zip(first, second, strict=True)]) for name, of in _measures(slo).items()
    ]
    table = pl.DataFrame([row for row in rows if row], schema=_SCHEMA, orient="row")
    return Comparison(table=table, sentence=_sentence(table, first[0], second[0]))


_SCHEMA = {
    "measure": pl.String, "a": pl.Float64, "b": pl.Float64, "difference": pl.Float64, "low": pl.Float64,
    "high": pl.Float64, "requests": pl.Int64, "method": pl.String,
}  # fmt: skip


def _same_requests(one: Run, other: Run) -> None:
    columns = ["request_id", "model", "arrival_s", "prompt_tokens", "output_tokens"]
    a, b = one.served.asked, other.served.asked
    if len(a) != len(b) or not a.select(columns).equals(b.select(columns)):
        raise InputError(
            f"served other requests ({len(a):,} and {len(b):,})", "run both systems on one trace", field="run_a, run_b"
        )


def _measures(slo: SLO | None) -> dict[str, Callable[[Run], np.ndarray]]:
    """name -> one number a request, NaN where it has none."""

    def column(name: str) -> Callable[[Run], np.ndarray]:
        return lambda run: run.requests[name].to_numpy() - run.requests["arrival_s"].to_numpy()

    def tpot(run: Run) -> np.ndarray:
        out = run.served.outcome
        return np.where(out.made > 1, (out.finish_s - out.first_token_s) / np.maximum(1, out.made - 1), np.nan)

    found = {"ttft_s": column("first_token_s"), "tpot_s": tpot, "e2e_s": column("finish_s")}
    found["done"] = lambda run: (run.served.outcome.status == DONE).astype(float)
    if slo is not None:

        def kept(run: Run) -> np.ndarray:
            share, weight = run.kept(slo)
            return np.where(weight > 0, share, np.nan)

        found[f"attainment_{slo.definition}"] = kept
    return found


def _row(name: str, pairs: list[tuple[np.ndarray, np.ndarray]]) -> tuple | None:
    both = [(a[keep], b[keep]) for a, b in pairs for keep in [~np.isnan(a) & ~np.isnan(b)] if keep.any()]
    if not both:
        return None
    count = sum(a.size for a, _ in both)
    mean_a, mean_b = (float(np.mean([pair[side].mean() for pair in both])) for side in (0, 1))
    interval, method = _interval([b - a for a, b in both])
    low, high = (interval.low, interval.high) if interval else (None, None)
    return name, mean_a, mean_b, mean_b - mean_a, low, high, count, method


def _interval(differences: list[np.ndarray]) -> tuple[Interval | None, str]:
    if len(differences) > 1:
        means = [values.mean() for values in differences]
        return student_interval(means), f"Student over {len(means)} pairs of runs"
    (values,) = differences
    batches = min(BATCHES, values.size // 2)
    if batches < 2:
        return None, "too few requests for an interval"
    return batch_means(values, batches).interval, f"Student over {batches} batches of consecutive requests"


def _sentence(table: pl.DataFrame, a: Run, b: Run) -> str:
    if not table.height:
        return f"neither {a.system.name} nor {b.system.name} served a request that can be compared."
    parts = []
    for row in table.filter(pl.col("measure") != "done").iter_rows(named=True):
        sure = "" if row["low"] is None else f" (95 %: {row['low']:+.3g} to {row['high']:+.3g})"
        parts.append(f"{row['measure']} by {row['difference']:+.3g}{sure}")
    return f"from {a.system.name} to {b.system.name} the same requests change {', '.join(parts)}."
