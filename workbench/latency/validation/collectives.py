"""All-reduces of tensor parallelism: α + S/B fitted to every second measured size, tested on the others."""

import numpy as np
import polars as pl

from workbench.latency.messages import AllReduceRow
from workbench.latency.regression import nonnegative_fit
from workbench.latency.validation.files import measured_table

NCCL = {
    "a100-80gb-sxm": ("a100_sxm_2.27.3", (2, 4, 8)),
    "h100-80gb-sxm": ("h100_sxm_2.27.3", (2, 4, 8)),
    "h200-141gb-sxm": ("h200_sxm_2.26.2", (2, 4, 8)),
    "l40s-48gb": ("l40s_2.27.3", (2,)),
}
"""Accelerator -> file and group sizes; over 4 and 8 L40S the rows collapse to 0.8-6 GB/s (host path): not used."""

LARGEST_BYTES = 256 * 2**20
SOURCE = (
    "AIConfigurator, NCCL sweeps, Apache-2.0 licence: all-reduce in half precision up to 256 MiB, every second size"
)


def all_reduce_rows(gpu: str, accelerators: int) -> pl.DataFrame:
    """bytes (whole message), seconds, held_out; sorted by size."""
    table = measured_table("aiconfigurator", f"nccl_{NCCL[gpu][0]}.parquet")
    wanted = (pl.col("op_name") == "all_reduce") & (pl.col("nccl_dtype") == "half")
    table = table.filter(wanted & (pl.col("num_gpus") == accelerators))
    # The size counts elements, two bytes each.
    rows = table.select(bytes=pl.col("message_size") * 2.0, seconds=pl.col("latency") / 1e3)
    rows = rows.group_by("bytes").agg(pl.col("seconds").median()).sort("bytes").filter(pl.col("bytes") <= LARGEST_BYTES)
    return rows.with_columns(held_out=pl.int_range(pl.len()) % 2 == 1)


def fit_all_reduce(gpu: str, accelerators: int) -> AllReduceRow:
    """α and B of one group size."""
    rows = all_reduce_rows(gpu, accelerators).filter(~pl.col("held_out"))
    size = rows["bytes"].to_numpy()
    alpha, per_byte = nonnegative_fit(np.column_stack([np.ones(len(size)), size]), rows["seconds"].to_numpy())
    return AllReduceRow(
        accelerator=gpu, accelerators=accelerators, alpha_s=alpha, bytes_per_s=1 / per_byte, status="fitted",
        source=SOURCE,
    )  # fmt: skip
