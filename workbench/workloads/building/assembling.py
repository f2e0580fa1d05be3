"""All steps from the rows of a file to the request table, in order."""

import polars as pl

from workbench.errors import InputError
from workbench.records import Record
from workbench.workloads.building.checks import with_sound_cells, with_sound_lengths
from workbench.workloads.building.hashing import with_sound_hashes
from workbench.workloads.building.parsing import parsed
from workbench.workloads.building.timing import timed
from workbench.workloads.cells import tidy_ids
from workbench.workloads.files.head import ROW, Head
from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.origin import Transformation
from workbench.workloads.readers.mapping import Clock, Format, Mapping

DEFAULT_MODEL = "default"
COLUMNS = ("request_id", "model", "arrival_s", "prompt_tokens", "output_tokens")


class Assembled(Record):
    """The request table of a file and how its clock and rows were.

    Attributes:
        requests: see `Trace.requests`.
        mapping: the columns it was read from.
        clock, start_s: of the first arrival.
        rows_read: data rows before any was left out.
        steps: what was done to the times.
    """

    requests: pl.DataFrame
    mapping: Mapping
    clock: Clock
    start_s: float
    rows_read: int
    steps: tuple[Transformation, ...]


def assembled(head: Head, form: Format, options: ReadOptions, ledger: Ledger) -> Assembled:
    """Read, check, order and name the requests of one file."""
    if form.rewrite:
        head = form.rewrite(head, options, ledger)
    mapping = form.columns(head, options)
    rows = Rows(head, mapping.wanted(), options.part, options.limits)
    table = parsed(rows, mapping, form, options, ledger)
    rows_read = table.height + sum(defect.dropped for defect in ledger.defects)
    table = with_sound_cells(table, rows, mapping, ledger)
    table = with_sound_lengths(table, mapping, options, ledger)
    if mapping.hashes:
        table = with_sound_hashes(table, mapping, ledger)
    if not table.height:
        left_out = [f"{one.dropped:,} of {one.defect}" for one in ledger.defects if one.dropped]
        why = f" (left out: {', '.join(left_out)})" if left_out else ""
        raise InputError(f"no row is left to use{why}", "correct the file or read another part", file=ledger.file)
    times = timed(table, mapping, options, ledger)
    return Assembled(
        requests=_named(times.table, options, ledger),
        mapping=mapping,
        clock=times.clock,
        start_s=times.start_s,
        rows_read=rows_read,
        steps=_cuts(options) + times.steps,
    )


def _named(table: pl.DataFrame, options: ReadOptions, ledger: Ledger) -> pl.DataFrame:
    ids = tidy_ids(table["request_id"]) if "request_id" in table.columns else table[ROW] - 1
    doubled = ids.is_duplicated()
    if doubled.any():
        repeats = len(ids) - ids.n_unique()
        first = int(table[ROW].filter(doubled)[0])
        ledger.note("doubled request id", repeats, "all requests numbered by row", example_row=first)
        ids = table[ROW] - 1
    if options.model is not None or "model" not in table.columns:
        models = pl.lit(options.model or DEFAULT_MODEL, dtype=pl.String)
    else:
        models = table["model"].cast(pl.String)
    return table.with_columns(request_id=ids, model=models).select(
        *COLUMNS, *(name for name in ("prefix_hashes", "priority") if name in table.columns)
    )


def _cuts(options: ReadOptions) -> tuple[Transformation, ...]:
    steps = []
    if options.rows is not None:
        start, stop = options.part
        steps.append(Transformation(name="rows", parameters={"start": str(start), "stop": str(stop)}))
    if options.window is not None:
        start_s, end_s = options.window
        steps.append(Transformation(name="window", parameters={"start_s": f"{start_s:g}", "end_s": f"{end_s:g}"}))
    return tuple(steps)
