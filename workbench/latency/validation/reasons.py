"""Why a class misses its target, in words: the assumption at fault, named for every class that fails."""

from typing import NamedTuple

import polars as pl


class Reason(NamedTuple):
    """A sentence for the rows whose columns hold all the given texts; an empty text matches anything."""

    kernel: str
    format: str
    shape: str
    size: str
    sentence: str


KERNELS = (
    Reason(
        "matrix product", "fp8", "", "",
        "Activations are turned into fp8 by a kernel of its own whose time grows with tokens x rows, for which a "
        "roofline has no term; with it five coefficients follow the H100, but not the kernels of H200 and L40S.",
    ),
    Reason(
        "matrix product", "", "narrow", "",
        "Matrices narrower than 1,024 do not fill the GPU, so tiles and launches decide, not rates; those of up to "
        "about 10 MB are also read faster than memory allows, out of the level-2 cache between repeats.",
    ),
    Reason(
        "matrix product", "", "wide", "",
        "Near the ridge arithmetic and reading take equally long and overlap in part only, and rows are padded to "
        "whole tiles: a sharp roofline is low by up to a fifth; the exponent of the fit takes up most of it.",
    ),
    Reason("matrix product", "", "all", "", "Decided by the narrow matrices; the wide ones meet both targets."),
    Reason(
        "decode attention", "", "KV in the cache", "",
        "Keys and values stay in the level-2 cache between repeats of the benchmark, which no serving step enjoys; "
        "where there are many requests, issuing their work takes longer than reading.",
    ),
    Reason(
        "decode attention", "", "KV beyond the cache", "",
        "One rate stands for all contexts: many short caches are bound by issuing the work of every KV head, and a few "
        "very long ones do not occupy all multiprocessors.",
    ),
    Reason(
        "decode attention", "", "all", "",
        "Most rows have keys and values that fit the level-2 cache, out of which a repeated benchmark reads.",
    ),
    Reason(
        "prompt attention", "", "chunk of a prompt", "",
        "A small chunk is one tile of queries a head, and one multiprocessor then reads the whole cached part: its "
        "rate is far below that of the memory; few points.",
    ),
    Reason(
        "prompt attention", "", "all", "all", "Decided by small chunks behind a long cached part, half of few points."
    ),
    Reason(
        "prompt attention", "", "", "",
        "Short prompts fill tiles and multiprocessors unevenly, so the rate of long prompts is not reached.",
    ),
)  # fmt: skip

LAYERS = (
    "At few tokens and much TP a layer is a row of kernels of a few microseconds each, and the launch constant, which "
    "the many rows of large sizes decide, is wrong for them; near the ridge a sharp roofline is low."
)


def with_reasons(table: pl.DataFrame) -> pl.DataFrame:
    """Adds `why`: empty where both targets are met."""
    found = pl.lit(LAYERS)
    if "kernel" in table.columns:
        found = pl.lit("")
        for reason in reversed(KERNELS):
            given = {name: text for name, text in reason._asdict().items() if text and name != "sentence"}
            found = (
                pl.when(*(pl.col(name) == text for name, text in given.items()))
                .then(pl.lit(reason.sentence))
                .otherwise(found)
            )
    met = pl.col("fitted_met") & pl.col("roofline_met")
    return table.with_columns(why=pl.when(met).then(pl.lit("")).otherwise(found))
