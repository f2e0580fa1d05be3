"""Save a run as a folder of Parquet and JSON, and load it again: no code in the data, nothing half-written."""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from workbench.catalogue.outcome import Outcome
from workbench.errors import InputError, UserError

FORMAT = "workbench.result/1"


def save(outcome: Outcome, path: str | Path) -> Path:
    """Write a run to a new folder, which appears whole or not at all.

    Raises:
        UserError: something that is not a saved run stands at that path already.
    """
    path = Path(path)
    if path.exists() and not (path / "result.json").is_file():
        raise UserError(f"{path} exists and is not a saved result; choose another folder.")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        for name, table in outcome.tables.items():
            table.write_parquet(beside / f"{name}.parquet")
        outcome.published.write_parquet(beside / "_published.parquet")
        facts = outcome.model_dump(mode="json", exclude={"tables", "published"}, fallback=_as_text)
        (beside / "result.json").write_text(
            json.dumps({"format": FORMAT, "tables": list(outcome.tables), **facts}, indent=1)
        )
        beside.chmod(0o755)
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent))
            path.rename(old / "result")
            beside.rename(path)
            shutil.rmtree(old)
        else:
            beside.rename(path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return path


def load(path: str | Path) -> Outcome:
    """Read a saved run.

    Raises:
        InputError: the folder is not a saved run, or a part of it is missing or broken.
    """
    path = Path(path)
    facts_file = path / "result.json"
    if not facts_file.is_file():
        raise InputError("no saved result here", "give the folder that result.save() wrote", file=path)
    try:
        facts = json.loads(facts_file.read_text())
        if not isinstance(facts, dict) or facts.pop("format", None) != FORMAT:
            raise InputError("not a saved result of this format", f"save it again ({FORMAT})", file=facts_file)
        names = facts.pop("tables", [])
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


def _as_text(value: Any) -> str:
    return str(getattr(value, "name", value))
