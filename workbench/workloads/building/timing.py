"""Order and time: rows sorted stably, grids spread, the first arrival at zero."""

import numpy as np
import polars as pl

from workbench.errors import InputError
from workbench.records import Record
from workbench.workloads.clocks import TICKS_PER_S
from workbench.workloads.files.head import ROW
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.origin import Transformation
from workbench.workloads.readers.mapping import Clock, Mapping
from workbench.workloads.spreading import found_cell_s, spread_in_cells

_LONGEST_SPAN_S = 20 * 365.25 * 86_400
"""A longer trace has a wrong unit, or one stray Unix time among relative ones."""

_UNIX_FROM_S = 1e9
"""A relative clock does not start 31 years after its zero."""


class Timed(Record):
    """A table with `arrival_s`, and what its clock was.

    Attributes:
        table: rows by arrival.
        clock: of the file; relative times that are Unix times are called utc.
        start_s: the first arrival on that clock.
        steps: what was done to the times.
    """

    table: pl.DataFrame
    clock: Clock
    start_s: float
    steps: tuple[Transformation, ...] = ()


def timed(table: pl.DataFrame, mapping: Mapping, options: ReadOptions, ledger: Ledger) -> Timed:
    """Turn ticks into seconds since the first arrival.

    Rows are sorted by time; rows of the same time keep the order of the file.
    """
    if not mapping.arrival:
        ledger.note("no arrival times", table.height, "all requests are there at 0", example_row=int(table[ROW][0]))
        return Timed(table=table.with_columns(arrival_s=pl.lit(0.0)), clock="none", start_s=0.0)
    table = _in_order(table, ledger)
    per_s = TICKS_PER_S[mapping.unit]
    ticks = table["tick"].to_numpy()
    start_s, times_s = float(ticks[0] / per_s), (ticks - ticks[0]) / per_s
    clock = mapping.clock
    if clock != "utc":
        negative = ticks < 0
        _note(ledger, table, negative, "negative time", "shifted: the first arrival is at 0")
        if start_s >= _UNIX_FROM_S:
            clock = "utc"
            _note(
                ledger,
                table,
                np.ones(ticks.size, dtype=bool),
                "absolute Unix time",
                "shifted: the first arrival is at 0",
            )
    if times_s[-1] > _LONGEST_SPAN_S:
        row = int(table[ROW][int(np.argmax(np.diff(ticks))) + 1])
        problem = f"the times span {times_s[-1] / 86_400 / 365.25:,.0f} years"
        raise InputError(
            problem, "state the unit with unit=, or correct the times", file=ledger.file, row=row, field=mapping.arrival
        )
    times_s, offset_s, steps = _spread(times_s, mapping, options, ledger, table)
    return Timed(
        table=table.drop("tick").with_columns(arrival_s=pl.Series(times_s)),
        clock=clock,
        start_s=start_s + offset_s,
        steps=steps,
    )


def _in_order(table: pl.DataFrame, ledger: Ledger) -> pl.DataFrame:
    late = table["tick"] < table["tick"].cum_max()
    if not late.any():
        return table
    _note(ledger, table, late.to_numpy(), "time before that of an earlier row", "sorted by time, ties in file order")
    return table.sort("tick", maintain_order=True)


def _spread(
    times_s: np.ndarray, mapping: Mapping, options: ReadOptions, ledger: Ledger, table: pl.DataFrame
) -> tuple[np.ndarray, float, tuple[Transformation, ...]]:
    tied = np.append(False, np.diff(times_s) == 0)
    cell_s = None
    if options.spread is True:
        cell_s = found_cell_s(times_s) if mapping.cell_s == "found" else mapping.cell_s
    elif options.spread is not False:
        cell_s = options.spread
    if cell_s is None:
        _note(ledger, table, tied, "same time as the row before", "kept in file order")
        return times_s, 0.0, ()
    _note(ledger, table, tied, "same time as the row before", f"spread at random inside {cell_s:g} s")
    moved = spread_in_cells(times_s, cell_s, options.seed)
    step = Transformation(name="spread", parameters={"cell_s": f"{cell_s:g}", "seed": str(options.seed)})
    return moved - moved[0], float(moved[0]), (step,)


def _note(ledger: Ledger, table: pl.DataFrame, which: np.ndarray, defect: str, handling: str) -> None:
    places = np.flatnonzero(which)
    if places.size:
        ledger.note(defect, places.size, handling, example_row=int(table[ROW][int(places[0])]))
