"""Save a run as a folder of Parquet and JSON, and load it again: no code in the data, nothing half-written."""

import json
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import plain
from workbench.errors import InputError, UserError
from workbench.paths import aside, folder_atomic
from workbench.records import Record, given_path
from workbench.results import parquet

FORMAT = "workbench.result/1"


def save(outcome: Outcome, path: str | Path) -> Path:
    """Write a run to a new folder, which appears whole or not at all.

    Raises:
        UserError: something that is not a saved run stands at that path already, or nothing can be written there.
    """
    path = given_path(path, "path")
    if path.exists() and not (path / "result.json").is_file():
        raise UserError(f"{path} exists and is not a saved result; choose another folder.")
    with folder_atomic(path) as beside:
        for name, table in outcome.tables.items():
            (beside / f"{name}.parquet").write_bytes(parquet(table))
        (beside / "_published.parquet").write_bytes(parquet(outcome.published))
        facts = outcome.model_dump(mode="json", exclude={"tables", "published", "parameters"})
        facts["parameters"] = {name: plain(value) for name, value in outcome.parameters.items()}
        facts["profiles"] = {
            name: value.model_dump(mode="json")
            for name, value in outcome.parameters.items()
            if isinstance(value, Record)
        }
        (beside / "result.json").write_text(
            json.dumps({"format": FORMAT, "tables": list(outcome.tables), **facts}, indent=1), encoding="utf-8"
        )
    return path


def load(path: str | Path) -> Outcome:
    """Read a saved run. A profile that was made in code comes back as its name; its figures stay in `result.json`.

    Raises:
        InputError: the folder is not a saved run, or a part of it is missing or broken.
    """
    path = given_path(path, "path")
    facts_file = path / "result.json"
    if not facts_file.is_file():
        if (earlier := aside(path)).is_dir():
            raise InputError(
                "saving over this result was cut short",
                f"the earlier one is whole: rename {earlier.name} to it",
                file=path,
            )
        raise InputError("no saved result here", "give the folder that result.save() wrote", file=path)
    try:
        facts = json.loads(facts_file.read_text(encoding="utf-8"))
        if not isinstance(facts, dict) or facts.pop("format", None) != FORMAT:
            raise InputError("not a saved result of this format", f"save it again ({FORMAT})", file=facts_file)
        names, _ = facts.pop("tables", []), facts.pop("profiles", {})
        if any(not isinstance(name, str) or Path(name).name != name for name in names):
            raise InputError("a table's name is not a plain name", "save the result again", file=facts_file)
        tables = {name: pl.read_parquet(path / f"{name}.parquet") for name in names}
        points = pl.read_parquet(path / "_published.parquet")
        facts["parameters"] = {name: _frozen(value) for name, value in facts["parameters"].items()}
        return Outcome(tables=tables, published=points, **facts)
    except (json.JSONDecodeError, ValidationError, KeyError, TypeError, OSError, pl.exceptions.PolarsError) as error:
        problem = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"a broken saved result ({problem})", "run the experiment again and save it", file=path
        ) from None


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
