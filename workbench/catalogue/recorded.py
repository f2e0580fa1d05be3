"""Recorded runs: what readers without torch, or without measured data, see in their place, marked as recorded."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import plain
from workbench.catalogue.spec import Spec, find
from workbench.errors import UserError
from workbench.paths import facts_folder, write_atomic
from workbench.records import Source


def recorded_file(experiment: str) -> Path:
    """Where the recorded run of an experiment lies."""
    return facts_folder() / "recorded" / f"{experiment.replace('/', '-')}.json"


def record(outcome: Outcome) -> Path:
    """Keep a run as the recorded one, with its machine, versions, date and parameters (for the project's keepers).

    Kept are the tables and the backend that the experiment names in `keep`: by default all of a real run.

    Raises:
        UserError: the run has no such part, or this is not a checkout.
    """
    if not (facts_folder().parent / "pyproject.toml").is_file():
        raise UserError("Recorded runs belong to the project's own data; record from a checkout of the repository.")
    backend, leave_out = find(outcome.experiment).keep
    tables = {
        name: table.filter(pl.col("backend") == backend)
        for name, table in outcome.tables.items()
        if name not in leave_out
    }
    if not any(len(table) for table in tables.values()):
        raise UserError(f"{outcome.experiment}: this run has no {backend} part to record.")
    document = {
        "experiment": outcome.experiment,
        "origin": outcome.origin,
        "parameters": {name: plain(value) for name, value in outcome.parameters.items()},
        "sources": [
            source.model_dump()
            for source in outcome.sources
            if source.status == "measured" or source.quantity[0] in "σθ"  # how the real run was scaled
        ],
        "tables": {
            name: table.drop("backend").to_dict(as_series=False) for name, table in tables.items() if len(table)
        },
    }
    return write_atomic(recorded_file(outcome.experiment), json.dumps(document, indent=1) + "\n")


class Recording(NamedTuple):
    """A recorded run: its tables, what it ran on and when, and the sources it cited."""

    tables: dict[str, pl.DataFrame]
    about: str
    sources: list[Source]


def recording(spec: Spec, parameters: Mapping[str, Any]) -> Recording | None:
    """The recorded run of an experiment, or None where none was recorded with these parameters."""
    file = recorded_file(spec.id)
    if not file.is_file():
        return None
    document = json.loads(file.read_text(encoding="utf-8"))
    asked = json.loads(json.dumps({name: plain(value) for name, value in parameters.items()}))
    if document["parameters"] != asked:
        return None
    origin = document["origin"]
    return Recording(
        {name: pl.DataFrame(columns) for name, columns in document["tables"].items()},
        f"of {origin['date']} ({origin['machine']}, torch {origin['torch']})",
        [Source(**source) for source in document["sources"]],
    )
