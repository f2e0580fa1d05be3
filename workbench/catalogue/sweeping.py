"""One experiment over a grid of parameter values: the points, their tasks, and the joined tables."""

import hashlib
import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from workbench import profiles
from workbench.catalogue.context import Context
from workbench.catalogue.running import chosen_backends, replication_seeds
from workbench.catalogue.spec import Spec, find
from workbench.errors import UserError
from workbench.jit import source_key
from workbench.paths import facts_folder
from workbench.queueing.statistics import ends_over_runs
from workbench.sweeps import Finished, Task

MOST_TASKS = 100_000


def point(
    experiment: str, backend: str, mode: str, seed: int, parameters: Mapping[str, Any]
) -> dict[str, pl.DataFrame]:
    """The tables of one experiment at one point of the grid (what a worker is asked for)."""
    spec = find(experiment)
    return spec.function(Context(backend, mode, seed), **spec.bind(parameters))


def grid_points(spec: Spec, grid: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the grid's values with the fixed ones, checked, the last parameter running fastest."""
    if not isinstance(grid, Mapping):
        raise UserError(f"{spec.id}: the grid needs a table of parameter -> list of values, got {grid!r}.")
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            raise UserError(f"{spec.id}: the grid needs a list of values for {name!r}, got {values!r}.")
        if name in fixed:
            raise UserError(f"{spec.id}: {name!r} is both in the grid and fixed; leave one out.")
    if (count := math.prod(map(len, grid.values()))) > MOST_TASKS:
        raise UserError(f"{spec.id}: a grid of {count:,} points is more than {MOST_TASKS:,}; coarsen it.")
    names = list(grid)
    points = [dict(zip(names, values, strict=True)) for values in itertools.product(*grid.values())]
    for values in points:
        spec.bind({**fixed, **values})
    return points


def tasks_of(
    spec: Spec,
    points: Sequence[Mapping[str, Any]],
    fixed: Mapping[str, Any],
    *,
    backend: str | None,
    seed: int,
    replications: int,
    quick: bool,
) -> list[Task]:
    """One task a point and replication; the same replication has the same seed at every point."""
    (name,) = chosen_backends(spec, backend or spec.backends[0])
    seeds = replication_seeds(spec, seed, replications)
    if len(points) * len(seeds) > MOST_TASKS:
        raise UserError(f"{spec.id}: {len(points) * len(seeds):,} runs are more than {MOST_TASKS:,}; coarsen the grid.")
    mode = "quick" if quick else "full"
    tasks = []
    sources = source_key(sys.modules[spec.function.__module__].__file__) + _facts()
    for values in points:
        label = f"{spec.id} at " + (", ".join(f"{key} = {value}" for key, value in values.items()) or "its defaults")
        salt = sources + _profiles(spec, {**fixed, **values})
        for child in seeds:
            arguments = {"experiment": spec.id, "backend": name, "mode": mode, "seed": child}
            tasks.append(Task(f"{__name__}:point", {**arguments, "parameters": {**fixed, **values}}, label, salt))
    return tasks


def _facts() -> str:
    """Hash of the project's own facts: a result depends on them, whatever an experiment imports."""
    folder, total = facts_folder(), hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _profiles(spec: Spec, given: Mapping[str, Any]) -> str:
    """The profiles that parameters name, in full: a path or `local` can hold something else tomorrow."""
    loaders = {"cluster": profiles.cluster, "accelerator": profiles.accelerator, "model": profiles.model}
    values = spec.bind(given)
    kinds = {parameter.name: parameter.about.profile for parameter in spec.parameters if parameter.about.profile}
    return "".join(loaders[kind](values[name]).model_dump_json() for name, kind in kinds.items())


def _plain(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def joined(
    points: Sequence[Mapping[str, Any]], tasks: Sequence[Task], finished: Sequence[Finished], replications: int
) -> dict[str, pl.DataFrame]:
    """All results as one table a name, with columns for backend, replication and the grid's parameters in front."""
    tables: dict[str, list[pl.DataFrame]] = {}
    for index, (task, result) in enumerate(zip(tasks, finished, strict=True)):
        values = points[index // replications]
        marks = {"backend": task.arguments["backend"], "replication": index % replications}
        marks |= {name: _plain(value) for name, value in values.items()}
        for name, table in result.tables.items():
            taken = set(table.columns)
            front = [pl.lit(value).alias(f"{mark}_set" if mark in taken else mark) for mark, value in marks.items()]
            tables.setdefault(name, []).append(table.select(*front, pl.all()))
    return {name: pl.concat(parts, how="vertical_relaxed") for name, parts in tables.items()}


def summary(headline: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Mean and 95 % interval over replications of every headline number at every point of the grid."""
    keys = [*names, "series", "x", "unit"]
    rows = []
    for key, part in headline.group_by(keys, maintain_order=True):
        values = part["value"].drop_nulls().to_list()
        low, high = ends_over_runs(values) or (None, None)
        mean = sum(values) / len(values) if values else None
        rows.append((*key, mean, low, high, len(values)))
    schema = {name: headline.schema[name] for name in keys}
    schema |= {"mean": pl.Float64, "low": pl.Float64, "high": pl.Float64, "replications": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
