"""The main job: run the catalogue, write its pages, images and REPORT.md, and lose nothing that was computed."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from workbench.catalogue import reporting, running, spec, storing
from workbench.catalogue.findings import write_findings
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.spec import Spec
from workbench.cli import pages
from workbench.cli.durations import real_run_s
from workbench.cli.offline import write_explorers
from workbench.cli.places import require_writable
from workbench.cli.stopping import was_stopped
from workbench.cli.tables import progress
from workbench.errors import UnknownName, WorkbenchError
from workbench.paths import write_atomic


def reproduce(paper: str, *, quick: bool, out: Path, torch: bool, gallery: bool) -> None:
    """Run every experiment of a paper, or all.

    What an experiment gave is written before the next one begins, the report before the images. A failure of one takes
    nothing from the others: the report names it, and so does the `WorkbenchError` at the end.
    """
    specs = _specs(paper)
    if gallery:
        pages.require_chrome("--gallery")
    require_writable(out, "give another --out")
    outcomes: list[Outcome] = []
    failures: dict[str, str] = {}
    with progress(len(specs)) as tell:
        for number, entry in enumerate(specs, start=1):
            _announce(entry, number, len(specs), torch)
            backends = [name for name in entry.backends if torch or name != "torch"]
            try:
                usual = running.usual_replications(entry, quick)
                outcome = running.run(
                    entry, {}, backends=backends, quick=quick, replications=usual, progress=_named(entry.id, tell)
                )
                outcomes.append(outcome)
                if not gallery:
                    pages.write_page(outcome, entry.title, entry.question, out)
                    storing.save(outcome, out / pages.file_name(outcome))
            except Exception as error:
                failures[entry.id] = _sentence(error)
            tell("")
    write_findings(outcomes, out)
    report = out / "REPORT.md"
    write_atomic(report, reporting.report(outcomes, failures, lambda _: None))
    images, no_images = _images(outcomes, out)
    explorers, no_explorers = _explorers(outcomes, out) if gallery else ({}, "")
    write_atomic(
        report, reporting.report(outcomes, failures, lambda outcome: images.get(outcome.experiment), explorers)
    )
    _say(outcomes, report)
    if no_explorers:
        print(f"No pages with sliders: {no_explorers}", file=sys.stderr)
    if no_images:
        print(f"No still images: {no_images}", file=sys.stderr)
    if failures:
        for name, why in failures.items():
            print(f"{name}: {why}", file=sys.stderr)
        raise WorkbenchError(f"{len(failures)} of {len(specs)} experiments failed: {', '.join(failures)}.")
    if gallery and no_images:
        raise WorkbenchError("The gallery has no pictures.")
    if no_explorers:
        raise WorkbenchError("The gallery has no pages with sliders.")


def _announce(entry: Spec, number: int, of: int, torch: bool) -> None:
    """Where no progress bar is shown (a log, make in a pipe), a line an experiment says how far the work is."""
    if not sys.stderr.isatty():
        real = real_run_s(entry) if torch else 0
        about = f", its real run takes up to about {real:g} s" if real else ""
        print(f"{number} of {of}: {entry.id}{about}", file=sys.stderr, flush=True)


def _named(id: str, tell: Callable[[str], None]) -> Callable[[str], None]:
    """Say what is done with the experiment's name before it."""
    return lambda text: tell(text if text.startswith(id) else f"{id}: {text}")


def _specs(paper: str) -> list[Spec]:
    specs = list(spec.all_specs().values())
    papers = sorted({entry.paper for entry in specs})
    if paper == "all":
        return specs
    if paper not in papers:
        one = any(entry.id == paper for entry in specs)
        hint = f"`workbench run {paper}` runs that one experiment." if one else ""
        raise UnknownName("paper", paper, [*papers, "all"], hint)
    return [entry for entry in specs if entry.paper == paper]


def _images(outcomes: Sequence[Outcome], out: Path) -> tuple[dict[str, str], str]:
    """Name of each experiment's still image, and why there are none."""
    from workbench.figures import draw

    try:
        pages.require_chrome("drawing them")
        names = {outcome.experiment: f"{pages.file_name(outcome)}.svg" for outcome in outcomes}
        pages.write_images({out / names[outcome.experiment]: draw(outcome) for outcome in outcomes})
    except Exception as error:
        return {}, _sentence(error)
    return names, ""


def _explorers(outcomes: Sequence[Outcome], out: Path) -> tuple[dict[str, str], str]:
    """Page of each experiment that is explored without Python, and why there are none."""
    try:
        with progress() as tell:
            return write_explorers([outcome.experiment for outcome in outcomes], out, tell), ""
    except Exception as error:
        return {}, _sentence(error)


def _sentence(error: Exception) -> str:
    if was_stopped(error):
        raise KeyboardInterrupt from None
    if isinstance(error, WorkbenchError):
        return str(error)
    if os.environ.get("WORKBENCH_DEBUG"):
        raise error
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}"


def _say(outcomes: Sequence[Outcome], report: Path) -> None:
    for outcome in outcomes:
        print(f"{outcome.experiment:28} {outcome.sentence}")
        for backend, why in outcome.not_run.items():
            print(f"{'':28} {backend}: {why}")
    tally = ", ".join(f"{count} {name}" for name, count in reporting.counts(outcomes).items() if count)
    print(f"\nVerdicts: {tally or 'none'}.\nReport: {report}")
