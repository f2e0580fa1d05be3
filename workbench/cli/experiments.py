"""list, show, run, reproduce: the catalogue from the command line."""

import argparse
import sys
from pathlib import Path

from workbench.errors import UserError
from workbench.paths import figures_folder


def add(commands: argparse._SubParsersAction) -> None:
    """Enter the commands into the parser."""
    listing = commands.add_parser("list", help="the catalogue")
    listing.add_argument("paper", nargs="?", metavar="PAPER", help="only this paper's entries")
    listing.set_defaults(run=_list)

    show = commands.add_parser("show", help="one entry with its parameters and published values")
    show.add_argument("id", metavar="ID", help="of an experiment, from `workbench list`")
    show.set_defaults(run=_show)

    run = commands.add_parser("run", help="run one experiment; writes its figure and tables")
    run.add_argument("id", metavar="ID", help="of an experiment, from `workbench list`")
    run.add_argument(
        "--backend", action="append", help="analytic, compiled, simpy or torch; may be given several times"
    )
    run.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings", help="a parameter")
    run.add_argument("--seed", type=int, default=0, help="of what is random (default 0)")
    run.add_argument(
        "--replications", type=int, metavar="N", help="repetitions of a random experiment (default: its usual number)"
    )
    run.add_argument("--quick", action="store_true", help="fewer and smaller runs")
    run.add_argument("--published", metavar="CSV", help="your own points (series, x, value), overlaid and judged")
    run.add_argument(
        "--out", default=str(figures_folder()), metavar="FOLDER", help="where to write (default %(default)s)"
    )
    run.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    run.set_defaults(run=_run)

    reproduce = commands.add_parser("reproduce", help="every experiment, its figure, and REPORT.md")
    reproduce.add_argument("paper", nargs="?", default="all", metavar="PAPER", help="a paper's name, or all")
    size = reproduce.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="smaller runs (the default)")
    size.add_argument("--full", action="store_true", help="runs at full size")
    reproduce.add_argument(
        "--out", default=str(figures_folder()), metavar="FOLDER", help="where to write (default %(default)s)"
    )
    reproduce.add_argument("--no-torch", action="store_true", help="leave the real runs out")
    reproduce.add_argument(
        "--gallery", action="store_true", help="write REPORT.md and SVG images alone, no pages or tables"
    )
    reproduce.set_defaults(run=_reproduce)


def _list(options: argparse.Namespace) -> None:
    from workbench.catalogue import published, spec
    from workbench.errors import UnknownName

    entries = list(spec.all_specs().values())
    papers = sorted({entry.paper for entry in entries})
    if options.paper and options.paper not in papers:
        raise UnknownName("paper", options.paper, papers)
    for entry in entries:
        if options.paper in (None, entry.paper):
            points = len(published.published(entry.id))
            print(f"{entry.id:28} {entry.title} [{', '.join(entry.backends)}; {points} published points]")


def _show(options: argparse.Namespace) -> None:
    from workbench.cli.tables import show
    from workbench.face import experiment

    entry = experiment(options.id)
    print(f"{entry.id}: {entry.title}\n{entry.question}\n")
    print(
        "Backends: " + ", ".join(f"{name} (about {entry.seconds.get(name, 0):g} s)" for name in entry.backends) + "\n"
    )
    show(entry.parameters.drop("label"), "Parameters")
    show(entry.published.drop("experiment"), "Published points")


def _run(options: argparse.Namespace) -> None:
    from workbench.catalogue.running import chosen_backends
    from workbench.catalogue.spec import find
    from workbench.cli.durations import real_run_s
    from workbench.cli.pages import file_name, write_page
    from workbench.cli.places import require_writable
    from workbench.cli.tables import progress, show
    from workbench.face import experiment

    entry = experiment(options.id)
    settings = dict(_setting(text) for text in options.settings)
    folder = require_writable(options.out, "give another --out")
    spec = find(entry.id)
    if "torch" in chosen_backends(spec, options.backend) and (seconds := real_run_s(spec)):
        print(f"The real run takes about {seconds:g} s.", file=sys.stderr, flush=True)
    with progress() as tell:
        result = entry.run(
            options.backend, seed=options.seed, replications=options.replications, quick=options.quick,
            published=options.published, progress=tell, **settings,
        )  # fmt: skip
    if options.record:
        from workbench.catalogue.recorded import record

        print(f"Recorded in {record(result.outcome)}")
    page = write_page(result.outcome, entry.title, entry.question, folder)
    saved = result.save(folder / file_name(result.outcome))
    print(result.sentence + "\n")
    for why in result.outcome.not_run.values():
        print(why + "\n")
    verdicts = result.verdicts().drop("ours").rename({"ours_text": "ours"})
    show(verdicts.select("verdict", "claim", "published", "ours", "reason"), "Verdicts")
    show(result.agreement().drop("rows"), "Agreement of backends")
    print(f"Figure: {page}\nTables: {saved}")


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--set takes NAME=VALUE, got {text!r}; for example --set blocks=16.")
    return name.strip(), value.strip()


def _reproduce(options: argparse.Namespace) -> None:
    from workbench.cli.reproducing import reproduce

    reproduce(
        options.paper,
        quick=not options.full,
        out=Path(options.out),
        torch=not options.no_torch,
        gallery=options.gallery,
    )
