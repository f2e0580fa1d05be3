"""The handles that users hold: experiments, results, sweeps and findings."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from workbench import sweeps
from workbench.catalogue import published as facts
from workbench.catalogue import running, spec, storing, sweeping
from workbench.catalogue.findings import read_findings
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.sourcing import all_sources
from workbench.errors import UnknownName
from workbench.figures.whole import WholeTable
from workbench.results import READINGS, Verdict, agreement_table, verdict_table

if TYPE_CHECKING:
    from workbench.operating import Run


class Result:
    """One run of an experiment: its tables, its figure, and how far it can be believed."""

    def __init__(self, outcome: Outcome, judged: Callable[[], tuple[Verdict, ...]] | None = None):
        self._outcome, self._judged = outcome, judged

    @property
    def outcome(self) -> Outcome:
        """All that the run left behind, judged when it is first asked for."""
        if self._judged is not None:
            self._outcome = self._outcome.model_copy(update={"verdicts": self._judged()})
            self._judged = None
        return self._outcome

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """Polars frames by name, each with a `backend` column and SI units in its column names."""
        return self._outcome.tables

    @property
    def sentence(self) -> str:
        """What the run says, in one sentence computed from its tables."""
        return self._outcome.sentence

    def figure(self, panel: str | None = None):
        """The plotly `Figure`, published values drawn as open diamonds beside ours.

        Parameters:
            panel: one of the experiment's panels alone; all of them by default.
        """
        from workbench.figures import draw

        return draw(self._outcome, panel)

    def verdicts(self) -> pl.DataFrame:
        """Every published point, band or ordering beside our number: columns as `workbench.results.Verdict`.

        Found when first asked for: where one differs, runs with the assumption at fault dropped are made then.
        `ours` is null where it is no number; `ours_text` says it in words.
        """
        return WholeTable(verdict_table(self.outcome.verdicts))

    def agreement(self) -> pl.DataFrame:
        """How far the backends lie apart: columns as `workbench.results.Agreement`, and whether that is allowed."""
        return WholeTable(agreement_table(self._outcome.agreement))

    def sources(self) -> pl.DataFrame:
        """Where each number comes from: parameters, hardware figures and published points."""
        return WholeTable(all_sources(self._outcome))

    def save(self, path: str | Path) -> Path:
        """Write the run to a folder of Parquet and JSON, whole or not at all; `workbench.load` reads it."""
        return storing.save(self.outcome, path)

    def __repr__(self) -> str:
        outcome = self._outcome
        return f"<Result {outcome.experiment} by {', '.join(outcome.backends)}: {outcome.sentence}>"

    def _repr_html_(self) -> str:
        from workbench.figures.text import result_html

        return result_html(self.outcome)


class Experiment:
    """One entry of the catalogue."""

    def __init__(self, entry: spec.Spec):
        self._spec = entry
        self.id, self.title, self.question = entry.id, entry.title, entry.question
        self.backends, self.panels = entry.backends, entry.panels

    @property
    def parameters(self) -> pl.DataFrame:
        """What can be set: name, default, unit, range, and where the default comes from."""
        return WholeTable(
            [
                {
                    "parameter": item.name,
                    "label": item.about.label,
                    "default": _text(item.default),
                    "unit": item.about.unit,
                    "from": item.about.low,
                    "to": item.about.high,
                    "choices": ", ".join(item.about.choices) or item.about.profile,
                    "status": item.about.status,
                    "source": item.about.source or "chosen here; no source gives it",
                }
                for item in self._spec.parameters
            ],
            schema={name: pl.Float64 if name in ("from", "to") else pl.String for name in _PARAMETER_COLUMNS},
        )

    @property
    def published(self) -> pl.DataFrame:
        """What the paper says: one row a point, with its kind and source."""
        return WholeTable(facts.published(self.id))

    @property
    def seconds(self) -> dict[str, float]:
        """Roughly how long each backend takes on two cores, compiled code being warm."""
        return dict(self._spec.seconds)

    def run(
        self,
        backend: str | Iterable[str] | None = None,
        *,
        seed: int = 0,
        replications: int | None = None,
        quick: bool = False,
        published: str | Path | None = None,
        stop: threading.Event | None = None,
        progress: Callable[[str], object] | None = None,
        **parameters: Any,
    ) -> Result:
        """Run it.

        Parameters:
            backend: "analytic", "compiled", "simpy", "torch", or several; by default all but the real run.
            seed: seed of the run (a whole number of 0 or more).
            replications: independent repetitions of a random experiment; where None is given a full run makes as many
                as the experiment usually has, and a quick one a single one. With several, each has a child seed of its
                own, so that the first of them is not the run with one.
            quick: fewer and smaller runs where the experiment has such a mode.
            published: a CSV file of your own points (series, x, value), overlaid and judged too.
            stop, progress: an event that stops the work, and a function that is told how far it is.
            parameters: values of the experiment's own parameters; `cluster="local"` is this machine.

        Raises:
            UserError: an unknown name, a value out of range, a backend it does not have.
        """
        return Result(
            *running.run_unjudged(
                self._spec, parameters, backends=backend, seed=seed, quick=quick,
                replications=running.usual_replications(self._spec, quick) if replications is None else replications,
                points=published, stop=stop, progress=progress,
            )
        )  # fmt: skip

    def explore(self, *, live: bool = False, **parameters: Any):
        """Widgets for every parameter, and the figure that follows them.

        Parameters:
            live: whether the first backend answers at every move of a control; for settings with which a run that
                usually waits for its button is short.
            parameters: where the controls stand at first.
        """
        from workbench.explore import explore_experiment

        return explore_experiment(self._spec, parameters, live)

    def export_html(
        self,
        path: str | Path | None = None,
        *,
        sliders: Mapping[str, Any] | Iterable[str] | None = None,
        backend: str | Iterable[str] | None = None,
        quick: bool = False,
        progress: Callable[[str], object] | None = None,
        **parameters: Any,
    ) -> Path:
        """Write an explorer as one HTML file (at most 6 MB) that works without Python and without a network.

        Every position of the sliders is run now; the page shows the one that is picked.

        Parameters:
            path: of the file, by default `PAPER-NAME-explorer.html` under `figures/out`.
            sliders: parameter -> list of values, or how many over its range; or names alone (7 positions each). By
                default the first two parameters that have a range or choices.
            backend: who answers, by default the experiment's first.
            quick, progress: as in `run`.
            parameters: what stays fixed, and where sliders start.

        Raises:
            UserError: as `run`; or the page would be too large, with the slider to cut.
        """
        from workbench.explore.exporting import export_page

        return export_page(self._spec, path, sliders, parameters, backend=backend, quick=quick, progress=progress)

    def __repr__(self) -> str:
        return f"<Experiment {self.id}: {self.title}>"


_PARAMETER_COLUMNS = ("parameter", "label", "default", "unit", "from", "to", "choices", "status", "source")


def experiment(id: str) -> Experiment:
    """The catalogue's entry of this id (`PAPER/figN`, `PAPER/tabN`, `PAPER/word`); `UnknownName` lists near ones."""
    return Experiment(spec.find(id))


def experiments() -> pl.DataFrame:
    """The catalogue: id, title, question, backends, published points and rough duration of the longest backend."""
    return WholeTable(
        [
            {
                "id": entry.id,
                "title": entry.title,
                "question": entry.question,
                "backends": ", ".join(entry.backends),
                "published_points": len(facts.published(entry.id)),
                "seconds": max(entry.seconds.get(name, 0.0) for name in entry.backends),
            }
            for entry in spec.all_specs().values()
        ],
        schema={"id": pl.String, "title": pl.String, "question": pl.String, "backends": pl.String,
                "published_points": pl.Int64, "seconds": pl.Float64},
    )  # fmt: skip


class Sweep:
    """One experiment over a grid: every table with the grid's values in front, and a summary with intervals.

    Attributes:
        tables: polars frames by name, each read from the disk when it is asked for.
        grid: the parameters that were varied.
        kept: how many runs had been computed before.
    """

    def __init__(self, tables: Mapping[str, pl.DataFrame], grid: list[str], kept: int):
        self.tables, self.grid, self.kept = tables, grid, kept

    def summary(self) -> pl.DataFrame:
        """Mean and 95 % interval over replications of every headline number at every point."""
        return sweeping.summary(self.tables["headline"], self.grid)

    def __repr__(self) -> str:
        over = ", ".join(self.grid) or "one point"
        return f"<Sweep over {over}: {len(self.summary())} numbers, {self.kept} runs read from the cache>"


def sweep(
    id: str,
    grid: Mapping[str, Sequence[Any]],
    *,
    backend: str | None = None,
    replications: int = 1,
    seed: int = 0,
    quick: bool = False,
    executor: Executor | sweeps.Cluster | None = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    progress: Callable[[int, int, int], object] | None = None,
    stop: threading.Event | None = None,
    **parameters: Any,
) -> Sweep:
    """Run an experiment at every combination of the given values; what was computed before is read, not run.

    Parameters:
        id: the experiment.
        grid: parameter -> list of values.
        backend: which backend answers; the experiment's first by default.
        replications, seed, quick: as in `Experiment.run`; a replication has the same seed at every point.
        executor: a Dask client (`distributed.Client`) for other machines, or any `concurrent.futures` executor; by
            default processes of this machine.
        workers: number of those processes, by default one a core; of an executor that is not a client, its number.
        folder: where this machine keeps results as they come, by default in the cache folder.
        progress, stop: called with (done, of them read, in all), by default a bar in a notebook or on a terminal; an
            event that ends the run, keeping what there is.
        parameters: fixed values of other parameters.

    Raises:
        UserError: an unknown name or a value out of range, before anything runs; a full disk; a worker with another
            workbench. WorkbenchError: a run failed. What was computed is kept, and read by the next call.
    """
    entry = spec.find(id)
    points = sweeping.grid_points(entry, grid, parameters)
    tasks = sweeping.tasks_of(
        entry, points, parameters, backend=backend, seed=seed, replications=replications, quick=quick
    )
    with sweeping.bar(len(tasks)) as tell:
        told = tell if progress is None else progress
        finished = sweeps.run_tasks(tasks, executor=executor, workers=workers, folder=folder, progress=told, stop=stop)
    tables = sweeping.Joined(points, tasks, finished)
    return Sweep(tables, list(grid), sum(result.kept for result in finished))


def load(path: str | Path) -> "Result | Run":
    """A result or a run that was saved with its `save`; an `InputError` where the folder holds neither."""
    from workbench import operating

    if isinstance(path, str | Path) and operating.is_saved_run(path):
        return operating.load_run(path)
    return Result(storing.load(path))


def claims(paper: str = "") -> pl.DataFrame:
    """What is commonly said about the papers, whether it is so, and the experiment that shows it.

    Parameters:
        paper: one paper's claims, all when empty.

    Raises:
        UnknownName: no such paper.

    >>> claims("lambdascale")["reading"][0]
    'false'
    """
    table = facts.claims()
    if paper and paper not in table["paper"].to_list():
        raise UnknownName("paper", paper, table["paper"].unique(maintain_order=True).to_list())
    shown = table.filter(paper=paper).drop("paper") if paper else table
    return WholeTable(shown.drop("source") if paper else shown)


class Findings:
    """Everything that was compared in a run of the whole catalogue.

    Attributes:
        verdicts: one row a verdict, worst first, with each backend's number; see `catalogue.findings.verdicts_of`.
        agreement: one row for each quantity and pair of backends, worst first; see `catalogue.findings.agreement_of`.
    """

    def __init__(self, verdicts: pl.DataFrame, agreement: pl.DataFrame):
        self.verdicts, self.agreement = verdicts, agreement

    def counts(self, by: str = "strength") -> pl.DataFrame:
        """How many verdicts read what: one row for each strength, or each value of another column of `verdicts`."""
        if by not in (columns := [name for name in self.verdicts.columns if name != "verdict"]):
            raise UnknownName("column of the verdicts", by, columns)
        found = self.verdicts.group_by(by, "verdict").len()
        read = [name for name in READINGS if name in found["verdict"]]
        wide = found.pivot("verdict", index=by, values="len").fill_null(0).select(by, *read)
        return WholeTable(wide.with_columns(all=pl.sum_horizontal(pl.lit(0), *read)).sort(by))

    def read(self, verdict: str, paper: str = "") -> pl.DataFrame:
        """The verdicts that read so ("differs", say), whole, of one paper or of all; columns without a number left out.

        Raises:
            UnknownName: no such reading, or no verdict of such a paper.
        """
        if verdict not in READINGS:
            raise UnknownName("reading", verdict, READINGS)
        if paper and paper not in (papers := self.verdicts["paper"].unique().sort().to_list()):
            raise UnknownName("paper", paper, papers)
        table = self.verdicts.filter(verdict=verdict, **({"paper": paper} if paper else {}))
        shown = [one for one in table.columns if one not in ("paper", "verdict", "mode") and table[one].count()]
        return WholeTable(table.select(shown))

    def figure(self):
        """The plotly `Figure` of all of it."""
        from workbench.figures import draw_findings

        return draw_findings(self.verdicts, self.agreement)


def findings(folder: str | Path | None = None) -> Findings:
    """What a run of the whole catalogue found: formula, simulation, real runs and published values side by side.

    Parameters:
        folder: where `workbench reproduce` wrote; the run of the committed gallery when None.

    Raises:
        UserError: the folder holds no such tables.
    """
    return Findings(*read_findings(folder))


def browse(paper: str):
    """Widgets: every catalogue row of a paper by figure number, and the one picked explored. Errors: UnknownName."""
    from workbench.explore import browse_paper

    return browse_paper(paper)


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
