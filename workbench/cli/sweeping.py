"""sweep: an experiment over a grid, on this machine's cores or on a Dask cluster."""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workbench.errors import MissingExtra, UserError


def add(commands: argparse._SubParsersAction) -> None:
    """Enter the command into the parser."""
    sweep = commands.add_parser("sweep", help="run one experiment at every combination of values; kept and resumed")
    sweep.add_argument("id", metavar="ID", help="of an experiment, from `workbench list`")
    sweep.add_argument(
        "--grid", action="append", required=True, metavar="NAME=V1,V2", help="values of a parameter; once for each"
    )
    sweep.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings", help="a parameter")
    sweep.add_argument("--backend", metavar="NAME", help="who answers, by default the experiment's first")
    sweep.add_argument(
        "--replications", type=int, default=1, metavar="N", help="repetitions of a random experiment (default 1)"
    )
    sweep.add_argument("--seed", type=int, default=0, help="of what is random (default 0)")
    sweep.add_argument("--quick", action="store_true", help="smaller runs")
    sweep.add_argument("--workers", type=int, metavar="N", help="processes of this machine (default one a core)")
    sweep.add_argument(
        "--scheduler", metavar="ADDRESS|FILE", help="of a Dask cluster that does it instead, such as tcp://host:8786"
    )
    sweep.add_argument("--folder", metavar="FOLDER", help="where results are kept (default in the cache folder)")
    sweep.add_argument("--out", metavar="CSV", help="write the summary there")
    sweep.set_defaults(run=_sweep)


def _sweep(options: argparse.Namespace) -> None:
    from workbench.catalogue.spec import find
    from workbench.cli.places import require_place
    from workbench.cli.tables import show
    from workbench.face import sweep
    from workbench.paths import write_atomic

    spec = find(options.id)
    known = {parameter.name: parameter for parameter in spec.parameters}
    grid: dict[str, list[Any]] = {}
    for text in options.grid:
        name, values = _pair(text, "--grid", "nodes=4,8")
        items = [item.strip() for item in values.split(",")]
        grid[name] = [known[name].check(item, spec.id) for item in items] if name in known else items
    settings = dict(_pair(text, "--set", "blocks=16") for text in options.settings)
    if options.out:
        require_place(options.out, "give another --out")
    with _cluster(options.scheduler) as client:
        swept = sweep(
            spec.id, grid, backend=options.backend, replications=options.replications, seed=options.seed,
            quick=options.quick, executor=client, workers=options.workers, folder=options.folder,
            progress=None if sys.stderr.isatty() else _lines(), **settings,
        )  # fmt: skip
    summary = swept.summary()
    show(summary, "Mean and 95 % interval over replications")
    if options.out:
        print(f"Summary: {write_atomic(options.out, summary.write_csv())}")


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"{option} takes NAME=VALUE, got {text!r}; for example {option} {example}.")
    return name.strip(), value.strip()


def _lines() -> Callable[[int, int, int], None]:
    """In a log each tenth of the runs is a line, where a terminal has a bar."""
    said = [-1]

    def tell(done: int, kept: int, total: int) -> None:
        if (tenth := 10 * done // max(1, total)) > said[0]:
            said[0] = tenth
            print(f"{done} of {total} runs, {kept} of them kept from before", file=sys.stderr, flush=True)

    return tell


@contextmanager
def _cluster(scheduler: str | None) -> Iterator[Any]:
    """A client of a Dask cluster, by its address or the file that its scheduler wrote, or None."""
    if scheduler is None:
        yield None
        return
    if importlib.util.find_spec("distributed") is None:
        raise MissingExtra("--scheduler", "distributed", "cluster")
    from distributed import Client

    where: Mapping[str, str] = {"scheduler_file": scheduler} if Path(scheduler).is_file() else {"address": scheduler}
    try:
        client = Client(**where, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise UserError(
            f"No Dask scheduler answers at {scheduler} ({error}); start one with `dask scheduler`."
        ) from None
    with client:
        yield client
