"""From benchmark rows to a calibrated profile, with its errors on rows that were left out."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.latency.box import Box, Range
from workbench.latency.calibration.basis import TERMS, term_columns
from workbench.latency.calibration.profile import CalibratedProfile, PhaseFit, checked_name
from workbench.latency.calibration.reading import benchmark_rows
from workbench.latency.regression import held_out, independent, nonnegative_fit
from workbench.profiles import accelerator as find_accelerator
from workbench.profiles import model as find_model
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.deployment_record import Deployment
from workbench.profiles.model_record import Model
from workbench.records import Record

MOST_FITTED = 20_000
"""Rows of a phase that are fitted at most; four coefficients do not get better by more."""

FOLDS = 5
MOST_GROUPS = 16
"""Groups of neighbouring sizes that are left out in turn, where there are more sizes than that."""
LEAST_ROWS = 8
"""Rows of a phase below which errors on left-out rows mean nothing."""


class Calibration(Record):
    """What a calibration found.

    Attributes:
        profile: the coefficients, to be saved or used at once.
        errors: one row a phase and way of leaving rows out (fold, tp, batch): median size, median and 90 % quantile of
            the size of predicted / measured - 1; mixed rows are predicted only.
        remarks: what the rows could not tell, in sentences.
    """

    profile: CalibratedProfile
    errors: pl.DataFrame
    remarks: tuple[str, ...] = ()

    @property
    def coefficients(self) -> pl.DataFrame:
        """phase, term, value, unit: multiples of the time at data-sheet peaks, or seconds."""
        return pl.DataFrame(
            [
                {
                    "phase": fit.phase,
                    "term": term,
                    "value": value,
                    "unit": "s" if term.endswith("_s") else "x peak time",
                }
                for fit in self.profile.phases
                for term, value in zip(TERMS[fit.phase], fit.coefficients, strict=True)
            ]
        )

    @property
    def ranges(self) -> pl.DataFrame:
        """phase, quantity, least, most: outside, the profile warns."""
        return pl.DataFrame(
            [{"phase": fit.phase, **each.model_dump()} for fit in self.profile.phases for each in fit.ranges]
        )


def calibrate(
    path: str | Path,
    *,
    model: str | Path | Model | None = None,
    accelerator: str | Path | Accelerator | None = None,
    dtype: str | None = None,
    name: str | None = None,
    columns: Mapping[str, str] | None = None,
    unit: str = "s",
) -> Calibration:
    """Fit a step time to benchmark rows of one model on one kind of accelerator.

    Prompts cost constant + a x matrix products (or reading the weights, where that takes longer) + b x attention,
    decode steps constant + c x weights + d x KV cache + e x requests, where products, attention, weights and cache are
    their times at data-sheet peaks: three to four coefficients a phase, all of 0 or more. Weights are told from the
    constant only by rows of several TP.

    Parameters:
        path: CSV, JSON Lines or Parquet with one measured step a row, in the columns phase (prefill, decode, mixed),
            batch (prompts in a prefill step, else decoding requests), prompt_tokens (new ones a prompt), cached_tokens
            (a prompt), context_tokens (cached ones a decoding request), seconds, tp, model, accelerator, dtype.
        model, accelerator, dtype: what was measured, where the file has no such columns.
        name: of the profile, by default the file's.
        columns: our column -> the file's column.
        unit: of the measured times: "s", "ms", "us" or "ns".

    Raises:
        InputError, UserError: rows that cannot be used, with row and field; too few of them; several models at once.
    """
    rows = benchmark_rows(path, columns, unit)
    label = str(path)
    name = checked_name(name or Path(path).name.split(".")[0].lower().replace(" ", "-"))
    measured = find_model(_one("model", model, rows, label))
    device = find_accelerator(_one("accelerator", accelerator, rows, label))
    measured = measured.with_dtype(dtype or _column_value("dtype", rows, label))
    phases, errors, remarks = [], [], []
    for phase in TERMS:
        chosen = rows.filter(pl.col("phase") == phase)
        if not chosen.height:
            remarks.append(f"There are no {phase} rows, so the profile cannot tell {phase} times.")
            continue
        if (different := _distinct(chosen, phase).height) < LEAST_ROWS:
            remedy = f"measure at least {LEAST_ROWS}, of different sizes"
            what = "different steps" if different < chosen.height else "rows"
            raise InputError(f"there are only {different} {phase} {what}", remedy, file=label)
        fit, table, notes = _fit(phase, chosen, measured, device)
        phases.append(fit)
        errors += table
        remarks += notes
    if not phases:
        raise InputError("there are neither prefill nor decode rows", "mixed rows alone cannot be fitted", file=label)
    profile = CalibratedProfile(
        name=name,
        model=measured.name,
        accelerator=device.name,
        dtype=measured.weight_dtype,
        tp=tuple(sorted({int(tp) for tp in rows["tp"]})),
        phases=tuple(phases),
        source=f"{sum(fit.rows for fit in phases)} rows of {Path(path).name}",
    )
    remarks += _below_bound(rows, profile, measured, device)
    errors += _mixed_errors(rows.filter(pl.col("phase") == "mixed"), profile, measured, device)
    return Calibration(profile=profile, errors=pl.DataFrame(errors), remarks=tuple(remarks))


def _fit(phase: str, rows: pl.DataFrame, model: Model, accelerator: Accelerator):
    ranges, notes = tuple(_ranges(phase, rows)), []
    if rows.height > MOST_FITTED:
        notes.append(f"Of {rows.height:,} {phase} rows {MOST_FITTED:,} were fitted, taken at random.")
        rows = rows[np.sort(np.random.default_rng(0).choice(rows.height, MOST_FITTED, replace=False))]
    terms, seconds = TERMS[phase], rows["seconds"].to_numpy()
    columns = term_columns(phase, rows, model, accelerator)
    told = independent(columns / seconds[:, None])
    kept = columns[:, told]
    found = np.zeros(len(terms))
    found[told] = nonnegative_fit(kept, seconds)
    notes += [
        f"The {phase} rows do not tell {term} apart from the other terms; its cost is inside theirs."
        for term, known in zip(terms, told, strict=True)
        if not known
    ]
    # Steps measured several times are left out together: a fit that saw one of them has seen them all.
    step = rows.select(pl.struct("tp", "batch", *_SIZES[phase]).rank("dense")).to_series().to_numpy()
    _, first, step = np.unique(step, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    ways = {"every fifth row": order[step] % FOLDS}
    ways |= {f"each {axis} in turn": _few_groups(rows[axis].to_numpy()) for axis in ("tp", "batch")}
    table = [_errors(phase, "nothing", kept @ found[told], seconds)]
    for way, groups in ways.items():
        if len(np.unique(groups)) > 2:  # of two, one alone cannot tell what the other costs
            table.append(_errors(phase, way, held_out(kept, seconds, groups), seconds))
    fold = table[1]
    fit = PhaseFit(
        phase=phase,
        coefficients=tuple(found.tolist()),
        rows=len(seconds),
        in_sample_error=table[0]["median_error"],
        held_out_error=fold["median_error"],
        held_out_signed=fold["median_signed"],
        held_out_p90=fold["p90_error"],
        ranges=ranges,
    )
    return fit, table, notes


def _below_bound(rows: pl.DataFrame, profile: CalibratedProfile, model: Model, accelerator: Accelerator) -> list[str]:
    """A remark where measured times lie below the roofline at data-sheet peaks, which cannot be true."""
    below = asked = 0
    for phase in profile.phases:
        for tp in profile.tp:
            some = rows.filter((pl.col("phase") == phase.phase) & (pl.col("tp") == tp))
            if not some.height:
                continue
            step = profile.step_time(model, accelerator, Deployment(tp=tp)).model_copy(update={"box": Box()})
            batch = some["batch"].to_numpy()
            if phase.phase == "decode":
                bound_s = step.decode(batch, batch * some["context_tokens"].to_numpy()).bound_s
            else:
                tokens, cached = some["prompt_tokens"].to_numpy(), some["cached_tokens"].to_numpy()
                bound_s = step.prefill(batch * tokens, cached, batch).bound_s
            below += int((some["seconds"].to_numpy() < bound_s).sum())
            asked += some.height
    if not below:
        return []
    return [
        f"{below:,} of {asked:,} rows are faster than {accelerator.name} can be at its data-sheet peaks, below which "
        "no answer goes; check the unit of seconds, the model and the accelerator."
    ]


def _few_groups(sizes: np.ndarray) -> np.ndarray:
    """A group for each row: its size, or of many sizes a run of neighbouring ones with about as many sizes each."""
    each, place = np.unique(sizes, return_inverse=True)
    return place if len(each) <= MOST_GROUPS else place * MOST_GROUPS // len(each)


def _distinct(rows: pl.DataFrame, phase: str) -> pl.DataFrame:
    """The different steps among the rows of a phase, one row each."""
    return rows.unique(["tp", "batch", *_SIZES[phase]])


_SIZES = {"prefill": ("prompt_tokens", "cached_tokens"), "decode": ("context_tokens",)}


def _mixed_errors(rows: pl.DataFrame, profile: CalibratedProfile, model: Model, accelerator: Accelerator) -> list[dict]:
    """Steps of both kinds are predicted from the two phases, never fitted."""
    if not rows.height or len(profile.phases) < len(TERMS):
        return []
    predicted = np.empty(rows.height)
    for tp in profile.tp:
        chosen = (rows["tp"] == tp).to_numpy()
        some = rows.filter(pl.col("tp") == tp)
        step = profile.step_time(model, accelerator, Deployment(tp=tp)).model_copy(update={"box": Box()})
        tokens, cached, batch, context = (
            some[name].to_numpy() for name in ("prompt_tokens", "cached_tokens", "batch", "context_tokens")
        )
        predicted[chosen] = step.mixed_s(tokens, batch, batch * context, cached)
    return [_errors("mixed", "never fitted", predicted, rows["seconds"].to_numpy())]


def _errors(phase: str, left_out: str, predicted: np.ndarray, seconds: np.ndarray) -> dict:
    error = (predicted / seconds - 1)[~np.isnan(predicted)]
    if not len(error):
        error = np.array([np.nan])
    return {
        "phase": phase,
        "left_out": left_out,
        "rows": len(error),
        "median_error": float(np.median(np.abs(error))),
        "median_signed": float(np.median(error)),
        "p90_error": float(np.quantile(np.abs(error), 0.9)),
    }


def _ranges(phase: str, rows: pl.DataFrame) -> list[Range]:
    named = {"prompt_tokens": "tokens", "cached_tokens": "cached_tokens", "batch": "prompts"}
    if phase == "decode":
        named = {"batch": "batch", "context_tokens": "context_tokens"}
    return [
        Range(quantity=ours, least=float(rows[column].min()), most=float(rows[column].max()))
        for column, ours in named.items()
    ]


def _one(what: str, given, rows: pl.DataFrame, label: str):
    value = given if given is not None else _column_value(what, rows, label)
    if value is None:
        raise UserError(f"Which {what} was measured is not said: add a column {what} to {label}, or give {what}=NAME.")
    return value


def _column_value(what: str, rows: pl.DataFrame, label: str) -> str | None:
    if what not in rows.columns:
        return None
    values = rows[what].drop_nulls().unique().sort()
    if len(values) > 1:
        several = ", ".join(map(str, values[:4]))
        raise InputError(f"holds several values ({several})", "calibrate one at a time", file=label, field=what)
    return None if not len(values) else str(values[0]).strip()
