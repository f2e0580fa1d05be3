"""trace, data: request traces from the command line."""

import argparse
import json
from pathlib import Path

from workbench.cli.places import require_place, require_writable
from workbench.errors import UserError


def add(commands: argparse._SubParsersAction) -> None:
    """Enter the commands into the parser."""
    trace = commands.add_parser("trace", help="look into a request trace, rank its windows, convert it, fit a stand-in")
    actions = trace.add_subparsers(title="actions", metavar="ACTION", required=True)
    info = actions.add_parser("info", help="what is in it: size, lengths, arrivals, and every defect that was met")
    windows = actions.add_parser("windows", help="its busiest, burstiest or most representative windows")
    convert = actions.add_parser("convert", help="write it as CSV, JSONL or Parquet with our own columns")
    fit = actions.add_parser("fit", help="the parameters of a generator that resembles it")
    for action in (info, windows, convert, fit):
        action.add_argument("trace", metavar="NAME|FILE", help="a name of `workbench data list`, or a file")
        action.add_argument(
            "--column", action="append", default=[], metavar="OURS=THEIRS", help="which column holds what"
        )
        action.add_argument("--unit", choices=("s", "ms", "us", "ns", "datetime"), help="of the arrival times")
        action.add_argument("--rows", type=int, help="only the first so many rows")
        action.add_argument(
            "--window", type=float, nargs=2, metavar=("START", "END"), help="seconds after the first arrival"
        )
        action.add_argument("--drop-bad-rows", action="store_true", help="drop and count rows that cannot be read")
        action.add_argument(
            "--seed", type=int, default=0, help="of a generated stand-in and of a drawn trace (default 0)"
        )
    info.set_defaults(run=_info)
    windows.add_argument("--length", type=float, required=True, metavar="SECONDS", help="of a window")
    windows.add_argument(
        "--by", choices=("busiest", "burstiest", "representative"), default="busiest", help="what puts one first"
    )
    windows.add_argument("--top", type=int, default=10, metavar="N", help="how many to list (default 10)")
    windows.set_defaults(run=_windows)
    convert.add_argument("out", metavar="OUT", help="the file to write; its ending says the kind")
    convert.set_defaults(run=_convert)
    fit.add_argument("--draw", metavar="OUT", help="also draw a trace from it into this file")
    fit.set_defaults(run=_fit)

    data = commands.add_parser("data", help="public traces and measurements: list them, fetch a trace")
    actions = data.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="which there are, where they come from, and which are on this machine")
    listing.set_defaults(run=_list)
    fetch = actions.add_parser("fetch", help="download one; size and sha256 are checked")
    fetch.add_argument("name", metavar="NAME", help="of a trace, from `workbench data list`")
    fetch.add_argument("--to", metavar="FOLDER", help="by default the user's trace folder")
    fetch.add_argument("--mirror", metavar="URL", help="another server that holds the file under the same name")
    fetch.set_defaults(run=_fetch)


def _load(options: argparse.Namespace):
    from workbench import workloads

    columns = {}
    for text in options.column:
        ours, equals, theirs = text.partition("=")
        if not equals or not theirs:
            raise UserError(f"--column takes OURS=THEIRS, got {text!r}; for example --column arrival_s=timestamp.")
        columns[ours.strip()] = theirs.strip()
    return workloads.trace(
        options.trace, rows=options.rows, window=tuple(options.window) if options.window else None, seed=options.seed,
        bad_rows="drop" if options.drop_bad_rows else "refuse", columns=columns or None, unit=options.unit,
    )  # fmt: skip


def _info(options: argparse.Namespace) -> None:
    from workbench.cli.tables import show

    trace = _load(options)
    origin = trace.origin
    print(repr(trace).strip("<>"))
    facts = origin.model_dump(mode="json", exclude_none=True)
    for name, value in facts.items():
        if value not in ("", [], {}, False):
            print(f"  {name}: {value if isinstance(value, str | int | float | bool) else json.dumps(value)}")
    if origin.stand_in:
        print("  This is a generated stand-in, not the trace it resembles.")
    print()
    show(trace.statistics.table(), "Statistics")
    show(trace.defects, "Defects")
    if trace.changes.height:
        show(trace.changes, "Scaling")


def _windows(options: argparse.Namespace) -> None:
    from workbench import workloads
    from workbench.cli.tables import show

    table = workloads.windows(_load(options), options.length, by=options.by, top=options.top)
    show(table, f"Windows of {options.length:g} s, {options.by} first")


def _convert(options: argparse.Namespace) -> None:
    from workbench import workloads

    require_place(options.out, "give another OUT")
    trace = _load(options)
    path = workloads.convert(trace, options.out)
    print(f"{len(trace):,} requests written to {path}")


def _fit(options: argparse.Namespace) -> None:
    from workbench import workloads

    if options.draw:
        require_place(options.draw, "give another --draw")
    stand_in = workloads.fit(_load(options))
    print(stand_in.model_dump_json(indent=1))
    if options.draw:
        path = workloads.convert(stand_in.trace(seed=options.seed), options.draw)
        print(f"A trace drawn from it: {path}")


def _list(_: argparse.Namespace) -> None:
    import polars as pl

    from workbench import workloads
    from workbench.cli.tables import show
    from workbench.paths import facts_folder, measured_folder

    show(workloads.traces().drop("title"), "Traces")
    folder = measured_folder()
    table = pl.read_csv(facts_folder() / "measured.csv", infer_schema=False)
    held = [folder is not None and (folder / name).is_dir() for name in table["folder"]]
    show(table.with_columns(held=pl.Series(held)), "Measurements by others, which are not downloaded")
    print("Put them under measured/FOLDER/ of the folder that WORKBENCH_DATA names, under the file names of the table.")


def _fetch(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from workbench import workloads
    from workbench.paths import user_data_folder

    require_writable(options.to or user_data_folder(), "give another folder with --to")
    with tqdm(unit="B", unit_scale=True, leave=False, disable=None) as bar:

        def tell(done: int, total: int | None) -> None:
            bar.total = total
            bar.update(done - bar.n)

        found = workloads.fetch(
            options.name, folder=Path(options.to) if options.to else None, base_url=options.mirror, progress=tell
        )
    state = "downloaded" if found.downloaded else "was there already"
    print(f"{found.path}: {found.bytes:,} bytes, {state}, checked by {found.verified}")
