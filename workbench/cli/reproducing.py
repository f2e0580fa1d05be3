"""The main job: run the catalogue, write its pages, images and REPORT.md."""

import sys
from pathlib import Path

from workbench.catalogue import reporting, running, spec, storing
from workbench.catalogue.outcome import Outcome
from workbench.cli.tables import progress
from workbench.errors import UnknownName, WorkbenchError
from workbench.paths import write_atomic


def reproduce(paper: str, *, quick: bool, out: Path, torch: bool, gallery: bool) -> None:
    """Run every experiment of a paper, or all; raises at the end if one failed, when all else has been written."""
    specs = list(spec.all_specs().values())
    papers = sorted({entry.paper for entry in specs})
    if paper != "all":
        if paper not in papers:
            raise UnknownName("paper", paper, [*papers, "all"])
        specs = [entry for entry in specs if entry.paper == paper]
    outcomes: list[Outcome] = []
    failures: dict[str, str] = {}
    with progress(len(specs)) as tell:
        for entry in specs:
            backends = [name for name in entry.backends if torch or name != "torch"]
            try:
                outcomes.append(running.run(entry, {}, backends=backends, quick=quick, progress=tell))
            except WorkbenchError as error:
                failures[entry.id] = str(error)
            tell("")
    images = _write(outcomes, out, gallery)
    where = write_atomic(out / "REPORT.md", reporting.report(outcomes, failures, images.get))
    _say(outcomes, failures, where, bool(images))
    if failures:
        raise WorkbenchError(f"{len(failures)} of {len(specs)} experiments did not run: {', '.join(failures)}.")


def _write(outcomes: list[Outcome], out: Path, gallery: bool) -> "_Images":
    from workbench.figures import draw, pages

    out.mkdir(parents=True, exist_ok=True)
    images = _Images()
    if pages.chrome_found():
        figures = {out / f"{pages.file_name(outcome)}.svg": draw(outcome) for outcome in outcomes}
        images.update({path.stem: path.name for path in pages.write_images(figures)})
    if not gallery:
        for outcome in outcomes:
            entry = spec.find(outcome.experiment)
            pages.write_page(outcome, entry.title, entry.question, out)
            storing.save(outcome, out / pages.file_name(outcome))
    return images


class _Images(dict):
    """Still images by file stem, looked up by outcome."""

    def get(self, outcome: Outcome) -> str | None:
        return super().get(outcome.experiment.replace("/", "-"))


def _say(outcomes: list[Outcome], failures: dict[str, str], where: Path, images: bool) -> None:
    for outcome in outcomes:
        print(f"{outcome.experiment:28} {outcome.sentence}")
        for backend, why in outcome.not_run.items():
            print(f"{'':28} {backend}: {why}")
    tally = ", ".join(f"{count} {name}" for name, count in reporting.counts(outcomes).items() if count)
    print(f"\nVerdicts: {tally or 'none'}.")
    if not images:
        print("No still images: they need the lab extra's kaleido and a Chrome or Chromium.", file=sys.stderr)
    print(f"Report: {where}")
