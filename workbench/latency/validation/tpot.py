"""A closed form of five coefficients against measured TPOT, in sample and with a TP or a number of clients held out."""

import numpy as np
import polars as pl

from workbench.latency.closed_loop import closed_loop_tpot_s
from workbench.latency.regression import held_out, nonnegative_fit
from workbench.latency.roofline import roofline
from workbench.latency.validation.servers import LEAST, STANDS_FOR, TERMS, server_rows, tpot_columns
from workbench.profiles import accelerator, deployment
from workbench.profiles import model as find_model
from workbench.profiles.dtypes import BITS as BITS_OF_FORMATS

GROUP = ("accelerator", "engine", "precision", "model")
IN_SAMPLE_TARGET, HELD_OUT_TARGET = 0.10, 0.15
LEAST_POINTS = 12
"""Points of a group below which five coefficients are not fitted."""


def tpot_errors() -> pl.DataFrame:
    """One row a (GPU, engine, precision, model): points, coefficients, median errors, targets met.

    TPOT = weights·W + kv_cache·K + prompts·P + step_s + client_s·C, see `servers.tpot_columns`. In sample; with each TP
    in turn left out; with each number of clients in turn left out; and, `roofline_error`, by the roofline and BLIS's
    overheads with nothing fitted to these points. Groups of fewer than 12 points, and GB200 for which
    no profile is held, are reported without a target.

    The five terms were chosen with these held-out errors in view; their coefficients never saw the points left out.

    Raises:
        MissingData: the measurements are not on this machine.
    """
    rows = []
    for key, part in server_rows().group_by(list(GROUP), maintain_order=True):
        rows.append(dict(zip(GROUP, key, strict=True)) | _group(part))
    return pl.DataFrame(rows, infer_schema_length=None).sort(GROUP)


def tpot_points() -> pl.DataFrame:
    """Every point of the fitted groups with predicted TPOT: fitted_s, tp_held_out_s, clients_held_out_s."""
    parts = []
    for _, part in server_rows().group_by(list(GROUP), maintain_order=True):
        if part.height < LEAST_POINTS:
            continue
        columns, seconds, least = tpot_columns(part), part["tpot_s"].to_numpy(), np.array(LEAST)
        parts.append(
            part.with_columns(
                fitted_s=columns @ nonnegative_fit(columns, seconds, least),
                tp_held_out_s=held_out(columns, seconds, part["tp"].to_numpy(), least),
                clients_held_out_s=held_out(columns, seconds, part["clients"].to_numpy(), least),
            )
        )
    return pl.concat(parts)


def roofline_tpot_s(part: pl.DataFrame) -> np.ndarray | None:
    """Predicted TPOT of one group's points by the roofline and BLIS's overheads, nothing fitted to them.

    None for 4-bit floating point, for which step times have no format, and for GB200, which has no profile.
    """
    gpu, precision = part["accelerator"][0], part["precision"][0]
    if gpu in STANDS_FOR or precision not in BITS_OF_FORMATS:
        return None
    seconds = np.empty(part.height)
    shape = find_model(part["model"][0]).with_dtype(precision, "bf16" if precision == "bf16" else "fp8")
    for tp in part["tp"].unique():
        chosen = (part["tp"] == tp).to_numpy()
        some = part.filter(pl.col("tp") == tp)
        step = roofline(shape, accelerator(gpu), deployment(tp=tp))
        seconds[chosen] = closed_loop_tpot_s(
            step, *(some[name].to_numpy() for name in ("clients", "prompt_tokens", "output_tokens"))
        )
    return seconds


def _unfitted(part: pl.DataFrame, seconds: np.ndarray) -> dict[str, float | None]:
    predicted = roofline_tpot_s(part)
    if predicted is None:
        return {"roofline_error": None, "roofline_signed": None}
    error = predicted / seconds - 1
    return {"roofline_error": float(np.median(np.abs(error))), "roofline_signed": float(np.median(error))}


def _group(part: pl.DataFrame) -> dict[str, object]:
    columns, seconds, least = tpot_columns(part), part["tpot_s"].to_numpy(), np.array(LEAST)
    bound = columns[:, 0]
    about = {
        "points": part.height,
        "tp": " ".join(map(str, part["tp"].unique().sort())),
        "clients": f"{part['clients'].min():g} to {part['clients'].max():g}",
        "median_tpot_s": float(np.median(seconds)),
        "below_bound": int((seconds < bound).sum()),
        **_unfitted(part, seconds),
    }
    if part.height < LEAST_POINTS:
        nothing = dict.fromkeys([*TERMS, *_ERRORS])
        return about | nothing | {"reported_only": True, "met": None}
    found = nonnegative_fit(columns, seconds, least)
    ways = {
        "in_sample": columns @ found,
        "tp_held_out": held_out(columns, seconds, part["tp"].to_numpy(), least),
        "clients_held_out": held_out(columns, seconds, part["clients"].to_numpy(), least),
    }
    errors = {}
    for way, predicted in ways.items():
        error = (predicted / seconds - 1)[~np.isnan(predicted)]
        errors[f"{way}_error"] = float(np.median(np.abs(error))) if len(error) else None
        errors[f"{way}_signed"] = float(np.median(error)) if len(error) else None
    only = part["accelerator"][0] in STANDS_FOR
    met = errors["in_sample_error"] <= IN_SAMPLE_TARGET and all(
        errors[f"{way}_error"] is None or errors[f"{way}_error"] <= HELD_OUT_TARGET
        for way in ("tp_held_out", "clients_held_out")
    )
    coefficients = dict(zip(TERMS, found.tolist(), strict=True))
    return about | coefficients | errors | {"reported_only": only, "met": None if only else met}


_ERRORS = [f"{way}_{kind}" for way in ("in_sample", "tp_held_out", "clients_held_out") for kind in ("error", "signed")]
