"""A pool's run as a folder, as `workbench.operating.saving` writes other runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter

from workbench.errors import UserError
from workbench.operating.pool_run import PooledRun
from workbench.operating.pool_systems import PoolSystem
from workbench.operating.saving import FACTS, is_saved_run, put_together, take_apart
from workbench.paths import folder_atomic
from workbench.pooling import Pooling
from workbench.pooling.model import Lowered, Outcome, PoolRun
from workbench.profiles import SLO, Cluster, Deployment, Model
from workbench.results import parquet

POOL_FORMAT = "workbench.pool-run/1"
TABLES = ("requests", "iterations", "segments", "timeline", "allocation", "transfers", "turns", "rounds", "host")
RECORDS = {
    "system": PoolSystem, "cluster": Cluster, "deployment": Deployment, "slo": SLO | None, "pooling": Pooling
}  # fmt: skip


def save_pooled(run: PooledRun, path: str | Path) -> Path:
    """Write a run to a new folder, which appears whole or not at all.

    Raises:
        UserError: something that is not a saved run stands there, or nothing can be written there.
    """
    path = Path(path)
    if path.exists() and not is_saved_run(path):
        raise UserError(f"{path} exists and is not a saved run; choose another folder.")
    arrays: dict[str, np.ndarray] = {}
    numbers: dict[str, Any] = {}
    for name in ("lowered", "outcome"):
        take_apart(getattr(run.served, name), name, arrays, numbers)
    facts = {name: TypeAdapter(kind).dump_python(getattr(run, name), mode="json") for name, kind in RECORDS.items()}
    facts |= {"models": {name: model.model_dump(mode="json") for name, model in run.models.items()}}
    facts |= {"backend": run.backend, "notes": run.notes, "sentence": run.sentence, "numbers": numbers}
    facts |= {"shapes": {name: array.shape for name, array in arrays.items()}}
    with folder_atomic(path) as beside:
        for name in TABLES:
            (beside / f"{name}.parquet").write_bytes(parquet(getattr(run, name)))
        (beside / "asked.parquet").write_bytes(parquet(run.served.asked))
        held = {name: pl.Series([array.reshape(-1)]) for name, array in arrays.items()}
        (beside / "arrays.parquet").write_bytes(parquet(pl.DataFrame(held)))
        (beside / FACTS).write_text(json.dumps({"format": POOL_FORMAT, **facts}, indent=1))
    return path


def load_pooled(path: Path, facts: dict[str, Any]) -> PooledRun:
    """Read a saved run of a pool from its folder and the facts in it."""
    table = pl.read_parquet(path / "arrays.parquet")
    shapes, numbers = facts["shapes"], facts["numbers"]
    arrays = {name: table[name][0].to_numpy().reshape(shapes[name]).copy() for name in shapes}
    models = {name: Model.model_validate(model) for name, model in facts["models"].items()}
    served = PoolRun(
        asked=pl.read_parquet(path / "asked.parquet"),
        lowered=put_together(Lowered, "lowered", arrays, numbers),
        outcome=put_together(Outcome, "outcome", arrays, numbers),
        models=tuple(models),
    )
    records = {name: TypeAdapter(kind).validate_python(facts[name], strict=False) for name, kind in RECORDS.items()}
    return PooledRun(models=models, served=served, backend=facts["backend"], notes=tuple(facts["notes"]), **records)
