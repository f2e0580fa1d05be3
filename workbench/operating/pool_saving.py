"""A pool's run as a folder, as `workbench.operating.saving` writes other runs."""

from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from workbench.operating.pool_run import PooledRun
from workbench.operating.pool_systems import PoolSystem
from workbench.operating.saving import put_together, write_run
from workbench.pooling import Pooling
from workbench.pooling.model import Lowered, Outcome, PoolRun
from workbench.profiles import SLO, Cluster, Deployment, Model

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
    return write_run(run, path, POOL_FORMAT, RECORDS, TABLES, {})


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
