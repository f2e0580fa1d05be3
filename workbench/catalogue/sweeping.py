"""One experiment over a grid of parameter values: the points, their tasks, and the joined tables."""

import functools
import hashlib
import itertools
import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from workbench import profiles
from workbench.catalogue.context import Context
from workbench.catalogue.running import chosen_backends, replication_seeds
from workbench.catalogue.spec import Spec, find
from workbench.errors import UserError
from workbench.paths import facts_folder
from workbench.queueing.statistics import ends_over_runs
from workbench.sweeps import Finished, Task, content_key

MOST_TASKS = 100_000
NOT_ASKED = ("recorded/", "claims.csv", "published/rows.csv")
"""Facts about results, which no experiment asks for: recorded runs, what is said, and the rows of catalogues."""


def point(
    experiment: str, backend: str, mode: str, seed: int, parameters: Mapping[str, Any], code: str, files: str
) -> dict[str, pl.DataFrame]:
    """The tables of one experiment at one point of the grid (what a worker is asked for).

    Parameters:
        experiment, backend, mode, seed, parameters: what to run.
        code, files: hashes of the code and facts, and of the files that parameters name, where the point was asked for.

    Raises:
        UserError: this worker would answer from others, so that its answer would be kept under a wrong name.
    """
    spec = find(experiment)
    if code != _code_of_worker(experiment):
        raise UserError(
            f"the worker on {platform.node()} runs another workbench, or other versions of what it needs, than were "
            "asked; install the same there, and start its workers again"
        )
    if files != _files(spec, parameters):
        raise UserError(
            f"a file that the parameters name is another one on {platform.node()}; give a path that all workers share"
        )
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
    code = _code(spec)
    for values in points:
        label = f"{spec.id} at " + (", ".join(f"{key} = {value}" for key, value in values.items()) or "its defaults")
        files = _files(spec, {**fixed, **values})
        for child in seeds:
            arguments = {"experiment": spec.id, "backend": name, "mode": mode, "seed": child, "code": code}
            arguments |= {"parameters": {**fixed, **values}, "files": files}
            tasks.append(Task(f"{__name__}:point", arguments, label))
    return tasks


def _code(spec: Spec) -> str:
    """Hash of an experiment's code, of this room's and of the project's facts."""
    rooms = content_key(spec.function.__module__) + content_key(__name__)
    return hashlib.sha256((rooms + _facts()).encode()).hexdigest()


@functools.cache
def _code_of_worker(experiment: str) -> str:
    """The same when a worker met the experiment first: what was edited since then it does not run."""
    return _code(find(experiment))


def _facts() -> str:
    """Hash of the project's own facts: a result depends on them, whatever an experiment imports."""
    folder, total = facts_folder(), hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if not name.startswith(NOT_ASKED):
            total.update(name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _files(spec: Spec, given: Mapping[str, Any]) -> str:
    """Hash of the profiles and files that parameters name: a path or `local` can hold something else tomorrow."""
    loaders = {"cluster": profiles.cluster, "accelerator": profiles.accelerator, "model": profiles.model}
    values, total = spec.bind(given), hashlib.sha256()
    for parameter in spec.parameters:
        value, about = values[parameter.name], parameter.about
        if about.profile:
            total.update(loaders[about.profile](value).model_dump_json().encode())
        elif about.trace and Path(value).is_file():
            total.update(Path(value).read_bytes())
    return total.hexdigest()


def _plain(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


class Joined(Mapping[str, pl.DataFrame]):
    """All results as one table a name, with columns for backend, replication and the grid's parameters in front.

    A table is read from where results are kept each time it is asked for; none is held.
    """

    def __init__(self, points: Sequence[Mapping[str, Any]], tasks: Sequence[Task], finished: Sequence[Finished]):
        self._points, self._tasks, self._finished = points, tasks, finished

    def __getitem__(self, name: str) -> pl.DataFrame:
        parts = []
        replications = len(self._tasks) // len(self._points)
        for index, (task, result) in enumerate(zip(self._tasks, self._finished, strict=True)):
            if name not in result.names:
                continue
            table = result.table(name)
            marks = {"backend": task.arguments["backend"], "replication": index % replications}
            marks |= {mark: _plain(value) for mark, value in self._points[index // replications].items()}
            taken = set(table.columns)
            front = [pl.lit(value).alias(f"{mark}_set" if mark in taken else mark) for mark, value in marks.items()]
            parts.append(table.select(*front, pl.all()))
        if not parts:
            raise KeyError(name)
        return pl.concat(parts, how="vertical_relaxed")

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for result in self._finished for name in result.names))

    def __len__(self) -> int:
        return len(list(iter(self)))


@contextmanager
def bar(runs: int) -> Iterator[Callable[[int, int, int], None]]:
    """A progress bar where somebody looks, in a notebook or on a terminal; call what it yields as `run_tasks` does."""
    from tqdm.auto import tqdm

    with tqdm(total=runs, unit=" runs", disable=None, delay=0.5) as shown:

        def tell(done: int, kept: int, total: int) -> None:
            shown.set_postfix_str(f"{kept} read", refresh=False)
            shown.update(done - shown.n)

        yield tell


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
