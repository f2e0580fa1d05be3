"""Another project's measured serving run, request by request, where `WORKBENCH_DATA` holds it."""

import functools
import json
from pathlib import Path

import polars as pl

from workbench.errors import InputError, MissingData
from workbench.paths import measured_folder

SOURCE = "LLMServingSim, bench/examples, MIT licence: vLLM 0.19 on an RTX 4090, 300 ShareGPT requests"
NAME = "rtx4090_llama3.1-8b_vllm"
FIELDS = ("input_toks", "output_toks", "arrival_time", "queued_ts", "first_token_ts", "last_token_ts")


def measured_run() -> pl.DataFrame:
    """The run's requests by arrival: `request_id, model, arrival_s, prompt_tokens, output_tokens, ttft_s, tpot_s,
    e2e_s`.

    Times count from the client's arrival. Arrivals were stamped by another clock than the rest; the two are laid on
    each other where the quickest request was queued the moment it arrived.

    Raises:
        MissingData: the folder of measurements is not on this machine. InputError: the file is missing or broken.
    """
    return _requests(_file("requests.jsonl"))


def measured_state() -> pl.DataFrame:
    """What the server reported each second: `time_s, running, waiting, kv_share`."""
    path = _file("timeseries.csv")
    try:
        table = pl.read_csv(path)
        return table.select("running", "waiting", time_s=pl.col("t"), kv_share=pl.col("kv_cache_pct") / 100)
    except pl.exceptions.PolarsError as error:
        problem = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"cannot be read ({problem})", "fetch the measurements again", file=path) from None


def _file(ending: str) -> Path:
    folder = measured_folder()
    if folder is None:
        raise MissingData("The measured requests of a vLLM server")
    path = folder / "llmservingsim" / f"{NAME}_{ending}"
    if not path.is_file():
        raise InputError("no such file", "check the folder that WORKBENCH_DATA names", file=path)
    return path


@functools.cache
def _requests(path: Path) -> pl.DataFrame:
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        columns = {field: [float(row[field]) for row in rows] for field in FIELDS}
    except (ValueError, KeyError, TypeError):
        raise InputError("holds no requests", "fetch the measurements again", file=path) from None
    if not rows:
        raise InputError("holds no requests", "fetch the measurements again", file=path)
    table = pl.DataFrame(columns).sort("arrival_time", maintain_order=True)
    apart_s = (table["queued_ts"] - table["arrival_time"]).min()
    arrived = pl.col("arrival_time") + apart_s
    last, first, output = pl.col("last_token_ts"), pl.col("first_token_ts"), pl.col("output_toks")
    return table.with_row_index("request_id").select(
        pl.col("request_id").cast(pl.Int64),
        model=pl.lit("default"),
        arrival_s=pl.col("arrival_time") - pl.col("arrival_time").first(),
        prompt_tokens=pl.col("input_toks").cast(pl.Int64),
        output_tokens=output.cast(pl.Int64),
        ttft_s=first - arrived,
        tpot_s=(last - first) / pl.max_horizontal(output - 1, pl.lit(1.0)),
        e2e_s=last - arrived,
    )
