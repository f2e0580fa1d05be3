"""The validation statistics as recorded in the facts, for readers without the measurements."""

import functools
from pathlib import Path

import polars as pl

from workbench.errors import InputError, UnknownName
from workbench.paths import facts_folder
from workbench.profiles.toml_reading import read_toml

KINDS = ("kernels", "layers", "servers", "anchors")


def recorded_statistics(kind: str) -> pl.DataFrame:
    """What `kernel_errors`, `layer_errors`, `tpot_errors` or `anchor_errors` gave when the facts were last recorded.

    Parameters:
        kind: "kernels", "layers", "servers" or "anchors".

    Raises:
        UnknownName: there is no such kind.

    >>> table = recorded_statistics("servers")
    >>> table.filter(pl.col("met") == False).height
    0
    """
    if kind not in KINDS:
        raise UnknownName("kind of validation statistics", kind, KINDS)
    return _read(facts_folder() / "latency" / "validation.toml", kind)


@functools.cache
def _read(path: Path, kind: str) -> pl.DataFrame:
    table = read_toml(path).get(kind)
    if not isinstance(table, dict) or not {"columns", "rows"} <= table.keys():
        raise InputError("is no table of columns and rows", "record the statistics again", file=path, field=kind)
    rows = [[None if cell == "" else cell for cell in row] for row in table["rows"]]
    return pl.DataFrame(rows, schema=table["columns"], orient="row", infer_schema_length=None)
