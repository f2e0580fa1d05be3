"""Run an experiment on one or more backends, any number of replications, and judge what comes out."""

import datetime
import functools
import math
import os
import platform
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import polars as pl

from workbench.catalogue.agreeing import agreements
from workbench.catalogue.context import Context
from workbench.catalogue.judging import Draft, judge
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.catalogue.published import published, read_points
from workbench.catalogue.recorded import recording
from workbench.catalogue.spec import BACKENDS, Spec
from workbench.errors import MissingData, MissingExtra, UnknownName, UserError
from workbench.records import Source, check_watching
from workbench.results import Verdict

Part = tuple[str, int, dict[str, pl.DataFrame]]
"""Backend, replication and tables."""

BETWEEN_S = 1.0
"""Time between two pictures of a run that goes on: to draw one takes time from it."""

VERSIONED = ("workbench-llm", "numpy", "numba", "polars", "simpy", "torch")


def run(spec: Spec, given: Mapping[str, Any], **how: Any) -> Outcome:
    """Run one experiment and judge it. Parameters as of `run_unjudged`."""
    outcome, judged = run_unjudged(spec, given, **how)
    return outcome.model_copy(update={"verdicts": judged()})


def run_unjudged(
    spec: Spec,
    given: Mapping[str, Any],
    *,
    backends: Iterable[str] | str | None = None,
    seed: int = 0,
    replications: int = 1,
    quick: bool = False,
    points: str | None = None,
    stop: threading.Event | None = None,
    progress: Callable[[str], object] | None = None,
    so_far: Callable[[Outcome], object] | None = None,
) -> tuple[Outcome, Callable[[], tuple[Verdict, ...]]]:
    """Run one experiment, and hand back besides what judges it: to blame an assumption takes runs of its own.

    Parameters:
        spec: the catalogue's entry.
        given: parameter values that differ from the defaults.
        backends: which backends answer, in this order; by default all but real runs, which must be asked for.
        seed: seed of the run; replication r uses a child seed of its own, the same for every backend.
        replications: independent repetitions; a deterministic experiment is run once whatever is asked.
        quick: fewer repetitions and smaller sizes where the experiment has such a mode.
        points: a CSV file of the reader's own published points, overlaid and judged too.
        stop, progress: a Stop button's event and a function that is told how far the work is.
        so_far: a function that is handed outcomes of a part, without sentence and agreement, by experiments that draw
            what they have before the rest is known; at once the first, then one a second at most.

    Returns:
        The outcome without verdicts, and a function that finds them; `stop` stops that too.

    Raises:
        UserError: a parameter, backend, seed or number of replications that cannot be, or no backend that can run here.
        InputError: a file of points that cannot be read. Stopped: somebody pressed Stop.
    """
    check_watching(progress, stop)
    chosen = chosen_backends(spec, backends)
    parameters = spec.bind(given)
    seeds = replication_seeds(spec, seed, replications)
    mode = "quick" if quick else "full"
    sources: dict[tuple[str, str], Source] = {}
    not_run: dict[str, str] = {}
    used: dict[str, None] = {}
    against: list[str] = []
    parts: list[Part] = []
    points_table = published(spec.id)
    if points is not None:
        points_table = pl.concat([points_table, read_points(points, spec.id)])
    comparable, reason = _comparable(spec, parameters)

    def told(parts: list[Part], holding: Mapping[str, Any] | None = None) -> Outcome:
        """All parts as an outcome; those of which more is to come hold what they hold, and say nothing yet."""
        tables = _joined(parts, spec.stochastic)
        return Outcome(
            experiment=spec.id,
            parameters={**parameters, **(holding or {})},
            backends=tuple(dict.fromkeys(backend for backend, _, _ in parts)),
            tables=tables,
            published=points_table,
            comparable=comparable,
            reason=reason,
            verdicts=(),
            agreement=agreements(spec.agrees, tables) if holding is None else (),
            sources=(*_parameter_sources(spec, parameters), *sources.values()),
            not_run=not_run,
            sentence=spec.say(tables, parameters) if holding is None else "",
            mode=mode,
            seed=seed,
            seeds=seeds,
            origin=origin(),
        )

    for backend in chosen:
        for index, child in enumerate(seeds):
            show = _now_and_then(so_far, lambda one, holding: told([*parts, one], holding), backend, index)
            context = Context(backend, mode, child, stop, progress, show)
            context.tell(f"{spec.id}: {backend}" + (f", run {index + 1} of {len(seeds)}" if len(seeds) > 1 else ""))
            try:
                parts.append((backend, index, spec.function(context, **parameters)))
            except (MissingExtra, MissingData) as missing:
                not_run[backend] = f"not run: {missing}"
                if (found := recording(spec, parameters)) is not None:
                    parts.append(("recorded", index, found.tables))
                    not_run[backend] += f" A recorded run {found.about} is shown instead."
                    sources |= {(source.quantity, source.value): source for source in found.sources}
                break
            for source in context.sources:
                sources[source.quantity, source.value] = source
            used |= dict.fromkeys(context.traces)
            against += [context.incomparable] if context.incomparable else []
    if not parts:
        raise UserError(f"{spec.id}: nothing ran. " + " ".join(not_run.values()))
    if comparable and against:
        comparable, reason = False, against[0]
    outcome = told(parts)
    tables = outcome.tables

    again: dict[str, dict[str, pl.DataFrame]] = {}

    def rerun(change: Mapping[str, Any]) -> dict[str, pl.DataFrame]:
        key = repr(sorted(change.items()))
        if key not in again:  # many verdicts may blame the same assumption
            changed = spec.bind({**given, **change})
            first = parts[0][0] if parts[0][0] in spec.backends else spec.backends[0]
            runs = [
                (first, index, spec.function(Context(first, mode, child, stop), **changed))
                for index, child in enumerate(seeds)
            ]
            again[key] = _joined(runs, spec.stochastic)
        return again[key]

    trace = ", ".join(used) or str(parameters.get("trace", ""))
    draft = Draft(spec, parameters, tables, points_table, comparable, reason, mode, seeds, trace, rerun)
    return outcome, functools.partial(judge, draft)


def origin() -> dict[str, str]:
    """Versions, kind of machine and date: what a reader needs to repeat a run."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **_versions(),
    }


@functools.cache
def _versions() -> dict[str, str]:
    versions = {}
    for name in VERSIONED:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "not installed"
    return versions


def chosen_backends(spec: Spec, asked: Iterable[str] | str | None) -> tuple[str, ...]:
    """The backends that were asked for, checked; all but the real run where none was."""
    if asked is None:
        return tuple(name for name in spec.backends if name != "torch") or spec.backends
    if not isinstance(asked, str | Iterable):
        raise UserError(f"{spec.id}: a backend is one of {', '.join(spec.backends)}, or a list of them, got {asked!r}.")
    names = tuple(dict.fromkeys([asked] if isinstance(asked, str) else asked))
    if not names:
        raise UserError(f"{spec.id}: no backend was named; give one of {', '.join(spec.backends)}.")
    for name in names:
        if name not in BACKENDS:
            raise UnknownName("backend", str(name), BACKENDS)
        if name not in spec.backends:
            raise UserError(f"{spec.id} has no {name} backend; it answers by {', '.join(spec.backends)}.")
    return names


def usual_replications(spec: Spec, quick: bool) -> int:
    """How often a run is repeated where nobody says: as the experiment has it, a quick run once."""
    return 1 if quick else spec.replications


def replication_seeds(spec: Spec, seed: int, replications: int) -> tuple[int, ...]:
    """One child seed a replication (the seed itself for one); a deterministic experiment is run once."""
    if not isinstance(replications, int) or isinstance(replications, bool) or replications < 1:
        raise UserError(f"{spec.id}: replications must be a whole number of 1 or more, got {replications!r}.")
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise UserError(f"A seed is a whole number of 0 or more, got {seed!r}.")
    if replications == 1 or not spec.stochastic:
        return (seed,)
    return tuple(int(child.generate_state(1)[0]) for child in np.random.SeedSequence(seed).spawn(replications))


def _now_and_then(
    so_far: Callable[[Outcome], object] | None,
    told: Callable[[Part, Mapping[str, Any]], Outcome],
    backend: str,
    index: int,
) -> Callable[[dict[str, pl.DataFrame], Mapping[str, Any]], None] | None:
    """What a context calls with a part: it is told on if the last one was a while ago."""
    if so_far is None:
        return None
    due = -math.inf

    def show(tables: dict[str, pl.DataFrame], holding: Mapping[str, Any]) -> None:
        nonlocal due
        if time.monotonic() >= due:
            so_far(told((backend, index, tables), holding))
            due = time.monotonic() + BETWEEN_S

    return show


def _joined(parts: list[Part], stochastic: bool) -> dict[str, pl.DataFrame]:
    joined: dict[str, list[pl.DataFrame]] = {}
    for backend, index, tables in parts:
        for name, table in tables.items():
            marks = [pl.lit(backend).alias("backend")]
            if stochastic:
                marks.append(pl.lit(index).alias("replication"))
            joined.setdefault(name, []).append(table.select(*marks, pl.all()))
    return {name: pl.concat(frames, how="vertical_relaxed") for name, frames in joined.items()}


def _comparable(spec: Spec, parameters: Mapping[str, Any]) -> tuple[bool, str]:
    changed = [
        parameter
        for parameter in spec.parameters
        if not parameter.about.free and parameters[parameter.name] != parameter.default
    ]
    hardware = [parameter for parameter in changed if parameter.about.profile in ("cluster", "accelerator")]
    if hardware:
        name = hardware[0].name
        return False, f"{name} = {name_of(parameters[name])} is not the paper's hardware ({hardware[0].default})"
    if changed:
        name = changed[0].name
        return False, f"{name} = {name_of(parameters[name])} is not the paper's setting ({changed[0].default})"
    return True, ""


def _parameter_sources(spec: Spec, parameters: Mapping[str, Any]) -> list[Source]:
    found = []
    for parameter in spec.parameters:
        about, value = parameter.about, parameters[parameter.name]
        default = value == parameter.default
        text = name_of(value)
        found.append(
            Source(
                quantity=about.label,
                value=text,
                unit=about.unit,
                status=about.status if default else "user",
                source=(about.source or "chosen here; no source gives it") if default else "set for this run",
            )
        )
    return found
