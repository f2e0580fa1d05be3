"""A run as a folder: its tables as Parquet for anybody, the engine's arrays and the records for `wb.load`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import polars as pl
from pydantic import TypeAdapter, ValidationError

from workbench.errors import InputError, UserError
from workbench.operating.pool_run import PooledRun
from workbench.operating.run_handle import Run
from workbench.operating.system_record import System
from workbench.paths import folder_atomic
from workbench.profiles import SLO, Cluster, Deployment, Model
from workbench.records import given_path
from workbench.results import parquet
from workbench.serving import Run as Served
from workbench.serving import Scenario
from workbench.serving.model import Lowered, Outcome

FORMAT = "workbench.run/1"
FACTS = "run.json"
PARTS = ("asked", "lowered", "outcome")
"""Of the engine's own record of a run; what else it has are plain values."""

TABLES = ("requests", "iterations", "segments", "timeline", "allocation")
RECORDS = {"system": System, "cluster": Cluster, "deployment": Deployment, "slo": SLO | None, "scenario": Scenario}


def save(run: Run, path: str | Path) -> Path:
    """Write a run to a new folder, which appears whole or not at all.

    Raises:
        UserError: something that is not a saved run stands there, or nothing can be written there.
    """
    engine_run = {name: getattr(run.served, name) for name in Served.model_fields if name not in PARTS}
    return write_run(run, path, FORMAT, RECORDS, TABLES, {"seed": run.seed, "engine_run": engine_run})


def write_run(
    run: Run | PooledRun,
    path: str | Path,
    form: str,
    records: Mapping[str, Any],
    tables: Sequence[str],
    facts: Mapping[str, Any],
) -> Path:
    """Write a run in a format: its records and tables, the arrays of the engine's own record, and facts of the format.

    Raises:
        UserError: as `save`.
    """
    path = given_path(path, "path")
    if path.exists() and not is_saved_run(path):
        raise UserError(f"{path} exists and is not a saved run; choose another folder.")
    arrays: dict[str, np.ndarray] = {}
    numbers: dict[str, Any] = {}
    for name in ("lowered", "outcome"):
        take_apart(getattr(run.served, name), name, arrays, numbers)
    told = {name: TypeAdapter(kind).dump_python(getattr(run, name), mode="json") for name, kind in records.items()}
    told |= {"models": {name: model.model_dump(mode="json") for name, model in run.models.items()}}
    told |= {"backend": run.backend, "notes": run.notes, "sentence": run.sentence, **facts}
    told |= {"numbers": numbers, "shapes": {name: array.shape for name, array in arrays.items()}}
    with folder_atomic(path) as beside:
        for name in tables:
            (beside / f"{name}.parquet").write_bytes(parquet(getattr(run, name)))
        (beside / "asked.parquet").write_bytes(parquet(run.served.asked))
        held = {name: pl.Series([array.reshape(-1)]) for name, array in arrays.items()}
        (beside / "arrays.parquet").write_bytes(parquet(pl.DataFrame(held)))
        (beside / FACTS).write_text(json.dumps({"format": form, **told}, indent=1), encoding="utf-8")
    return path


def is_saved_run(path: str | Path) -> bool:
    """Whether `save` wrote this folder."""
    return (given_path(path, "path") / FACTS).is_file()


def load_run(path: str | Path) -> Run | PooledRun:
    """Read a saved run; its tables come out bit for bit as they were.

    Raises:
        InputError: a part is missing or broken, or it was written in another format.
    """
    path = Path(path)
    try:
        facts = json.loads((path / FACTS).read_text(encoding="utf-8"))
        from workbench.operating.pool_saving import POOL_FORMAT, load_pooled

        if (written := facts.pop("format", None)) == POOL_FORMAT:
            return load_pooled(path, facts)
        if written != FORMAT:
            raise InputError("not a saved run of this format", f"save it again ({FORMAT})", file=path / FACTS)
        table = pl.read_parquet(path / "arrays.parquet")
        shapes, numbers = facts.pop("shapes"), facts.pop("numbers")
        arrays = {name: table[name][0].to_numpy().reshape(shapes[name]).copy() for name in shapes}
        served = Served(
            asked=pl.read_parquet(path / "asked.parquet"),
            lowered=put_together(Lowered, "lowered", arrays, numbers),
            outcome=put_together(Outcome, "outcome", arrays, numbers),
            **facts["engine_run"],
        )
        records = {name: TypeAdapter(kind).validate_python(facts[name], strict=False) for name, kind in RECORDS.items()}
        models = {name: Model.model_validate(model) for name, model in facts["models"].items()}
        rest = {name: facts[name] for name in ("seed", "backend", "notes")}
        return Run(models=models, served=served, **records, **rest)
    except (ValueError, ValidationError, KeyError, TypeError, OSError, pl.exceptions.PolarsError) as error:
        problem = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"a broken saved run ({problem})", "run it again and save it", file=path) from None


def take_apart(value: Any, name: str, arrays: dict[str, np.ndarray], numbers: dict[str, Any]) -> None:
    """Arrays and numbers of nested named tuples by dotted name."""
    if hasattr(value, "_fields"):
        for field in value._fields:
            take_apart(getattr(value, field), f"{name}.{field}", arrays, numbers)
    elif isinstance(value, np.ndarray):
        arrays[name] = value
    else:
        numbers[name] = value


def put_together(kind: type, name: str, arrays: dict[str, np.ndarray], numbers: dict[str, Any]) -> Any:
    """What `take_apart` took apart; a run that was saved by an older version lacks fields, which are as usual."""
    kind = next((part for part in get_args(kind) if hasattr(part, "_fields")), kind) if name not in numbers else kind
    if hasattr(kind, "_fields"):
        hints, usual, there = get_type_hints(kind), kind._field_defaults, {*arrays, *numbers}
        found = {
            field: put_together(hints[field], f"{name}.{field}", arrays, numbers)
            for field in kind._fields
            if field not in usual or any(f"{known}.".startswith(f"{name}.{field}.") for known in there)
        }
        return kind(**found)
    return arrays[name] if name in arrays else numbers[name]
