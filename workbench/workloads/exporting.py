"""Traces written so that anybody, and we, can read them."""

from pathlib import Path

import polars as pl

from workbench.errors import UserError
from workbench.paths import write_atomic
from workbench.records import given_path
from workbench.workloads.handle import Trace
from workbench.workloads.sidecar import remember

_KINDS = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet"}


def convert(trace: Trace, path: str | Path) -> Path:
    """Write a trace as a table with the columns `request_id, model, arrival_s, prompt_tokens, output_tokens` and, where
    there are any, `prefix_hashes` (in CSV separated by spaces) and `priority`.

    The file appears whole or not at all, its origin in `FILE.origin.json` beside it. Loading it again gives the same
    requests, bit for bit.

    Parameters:
        trace: to write.
        path: where to; it ends with .csv, .jsonl or .parquet.

    Raises:
        UserError: a path with another ending.
    """
    path = given_path(path, "path")
    kind = _KINDS.get(path.suffix)
    if kind is None:
        raise UserError(f"{path} ends with none of {', '.join(_KINDS)}; rename it.")
    table = trace.requests
    if kind == "csv" and "prefix_hashes" in table.columns:
        table = table.with_columns(pl.col("prefix_hashes").cast(pl.List(pl.String)).list.join(" "))
    write = {"csv": table.write_csv, "jsonl": table.write_ndjson, "parquet": table.write_parquet}[kind]
    written = write_atomic(path, write)
    remember(written, trace.origin)
    return written
