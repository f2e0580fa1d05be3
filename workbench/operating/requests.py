"""The requests that a system is asked to serve, checked before anything runs."""

from pathlib import Path

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.operating.system_record import System
from workbench.records import shown
from workbench.workloads import Trace
from workbench.workloads import trace as find_trace
from workbench.workloads.ledger import SCHEMA
from workbench.workloads.origin import Origin

COLUMNS = ("arrival_s", "prompt_tokens", "output_tokens")
DEFAULT_MODEL = "default"

Requests = Trace | pl.DataFrame | str | Path


def request_table(given: Requests) -> pl.DataFrame:
    """`request_id, model, arrival_s, prompt_tokens, output_tokens` and what else the table has, in order of arrival.

    Parameters:
        given: a trace, the name or path of one, or a table; ids and models are added where a table has none.

    Raises:
        InputError: a column that is missing, a cell that is empty or no number of 0 or more, arrivals out of order, a
            doubled id; each with the row.
    """
    if isinstance(given, str | Path):
        given = find_trace(given)
    table = given.requests if isinstance(given, Trace) else given
    if not isinstance(table, pl.DataFrame):
        raise InputError(f"is {shown(given)}", "give a trace, its name or path, or a polars table", field="trace")
    for column in COLUMNS:
        if column not in table.columns:
            raise InputError("is missing from the requests", f"add a column {column}", field=column)
        if not table[column].dtype.is_numeric():
            if table.height:
                raise InputError(f"holds {table[column].dtype}", "give numbers", field=column)
            table = table.with_columns(pl.lit(None, pl.Float64).alias(column))  # no rows, so no numbers to hold
        _sound(table[column], column)
    if "request_id" not in table.columns:
        table = table.with_row_index("request_id").with_columns(pl.col("request_id").cast(pl.Int64))
    elif (doubled := table["request_id"].is_duplicated()).any():
        row = int(doubled.arg_max())
        raise InputError(f"holds {table['request_id'][row]!r} twice", "number the requests", field="request_id")
    if "model" not in table.columns:
        table = table.with_columns(model=pl.lit(DEFAULT_MODEL))
    if (nameless := table["model"].is_null()).any():
        raise InputError("is empty", "name the model", row=int(nameless.arg_max()) + 1, field="model")
    return table.with_columns(pl.col("model").cast(pl.String))


def told_hash_blocks(system: System, given: Requests) -> System:
    """The system, whose engine is told how many tokens a prefix hash covers where the trace states it.

    An engine without a prefix cache, or requests without hashes, leave it as it is.

    Raises:
        InputError: the engine was told another number.
    """
    engine = system.batching
    if not engine.prefix_cache_tokens:
        return system
    given = find_trace(given) if isinstance(given, str | Path) else given
    stated = given.origin.block_tokens if isinstance(given, Trace) else None
    if stated is None or stated == engine.prefix_block_tokens:
        return system
    if engine.prefix_block_tokens is not None:
        raise InputError(
            f"is {engine.prefix_block_tokens}, but hashes of {given.origin.name} cover {stated} tokens each",
            "leave it out", field="prefix_block_tokens",
        )  # fmt: skip
    return system.replaced(engine=engine.model_copy(update={"prefix_block_tokens": stated}))


def _sound(column: pl.Series, name: str) -> None:
    if not len(column):
        return
    values = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    for wrong, remedy in (
        (~np.isfinite(values), "give a finite number"),
        (values < 0, "give 0 or more"),
        ((values != np.floor(values)) & (name != "arrival_s"), "give a whole number"),
    ):
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(f"is {values[row]:g}", remedy, row=row + 1, field=name)
    if name == "arrival_s" and (late := np.diff(values) < 0).any():
        raise InputError("comes before the one above it", "sort by arrival", row=int(late.argmax()) + 2, field=name)


def replayable(asked: pl.DataFrame, system: str) -> Trace:
    """The requests of a run as a trace, which can be written and asked again.

    Parameters:
        asked: what the run was asked; columns that only the run has are left out.
        system: which served them.

    Raises:
        UserError: no requests.
    """
    if not asked.height:
        raise UserError("The run has no requests, so that there is nothing to export.")
    columns = ("request_id", "model", "arrival_s", "prompt_tokens", "output_tokens", "prefix_hashes", "priority")
    table = asked.select(name for name in columns if name in asked.columns)
    origin = Origin(name=f"requests of {system}", format="generated", source="a run of this workbench")
    return Trace(requests=table, defects=pl.DataFrame(schema=SCHEMA), origin=origin)
