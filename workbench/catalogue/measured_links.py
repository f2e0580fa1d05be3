"""Other people's measurements of links, where `WORKBENCH_DATA` holds them."""

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.errors import InputError, MissingData
from workbench.paths import measured_folder


class LinkData(NamedTuple):
    """Measured times of one link or ring, sorted by size, one median a size.

    `ring` is the number of accelerators of an all-gather, 1 for a send/receive; sizes are whole messages in bytes.
    """

    message_bytes: np.ndarray
    seconds: np.ndarray
    ring: int
    source: str


LINKS = {
    "A100 send/receive in a host": ("vidur", "a100", 2),
    "A100 send/receive across hosts": ("vidur", "a100", 1),
    "H100 send/receive in a host": ("vidur", "h100", 2),
    "H100 send/receive across hosts": ("vidur", "h100", 1),
    "H100 send/receive in a host (APEX+)": ("apex_pair", "H100-SXM-80GB", 1),
    "H200 send/receive in a host": ("apex_pair", "H200-SXM-141GB", 1),
    "A100 all-gather of 8": ("aiconfigurator", "a100_sxm_2.27.3", 8),
    "A100 all-gather of 4": ("aiconfigurator", "a100_sxm_2.27.3", 4),
    "A100 all-gather of 2": ("aiconfigurator", "a100_sxm_2.27.3", 2),
    "H100 all-gather of 8": ("aiconfigurator", "h100_sxm_2.27.3", 8),
    "H100 all-gather of 4": ("aiconfigurator", "h100_sxm_2.27.3", 4),
    "H100 all-gather of 2": ("aiconfigurator", "h100_sxm_2.27.3", 2),
    "H200 all-gather of 8": ("aiconfigurator", "h200_sxm_2.26.2", 8),
    "H200 all-gather of 4": ("aiconfigurator", "h200_sxm_2.26.2", 4),
    "H200 all-gather of 2": ("aiconfigurator", "h200_sxm_2.26.2", 2),
    "H100 all-gather of 8 (APEX+)": ("apex_ring", "H100-SXM-80GB", 8),
    "H200 all-gather of 8 (APEX+)": ("apex_ring", "H200-SXM-141GB", 8),
}
"""Name -> (project that measured it, its name there, accelerators in a host or in the ring)."""

SOURCES = {
    "vidur": "Vidur, data/profiling/network, MIT licence",
    "apex_pair": "APEX+, profile/comm, MIT licence",
    "apex_ring": "APEX+, profile/comm, MIT licence",
    "aiconfigurator": "AIConfigurator, NCCL sweeps, Apache-2.0 licence",
}


@functools.cache
def read_link(name: str) -> LinkData:
    """The measurements of one of `LINKS`.

    Raises:
        MissingData: the folder of measurements is not on this machine.
        InputError: a file of it is missing or broken.
    """
    folder = measured_folder()
    if folder is None:
        raise MissingData("Measured link times")
    project, label, count = LINKS[name]
    reader = READERS[project]
    try:
        table, ring = reader(folder, label, count)
    except FileNotFoundError as error:
        raise InputError("no such file", "check the folder that WORKBENCH_DATA names", file=error.filename) from None
    except pl.exceptions.PolarsError as error:
        problem = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"cannot be read ({problem})", "fetch the measurements again", file=folder / project) from None
    table = table.filter(pl.col("bytes") > 0).group_by("bytes").agg(pl.col("seconds").median()).sort("bytes")
    return LinkData(table["bytes"].to_numpy(), table["seconds"].to_numpy(), ring, SOURCES[project])


def _vidur(folder: Path, gpu: str, in_host: int) -> tuple[pl.DataFrame, int]:
    table = _csv(folder / "vidur" / f"send_recv_{gpu}_dgx.csv").filter(pl.col("devices_per_node") == in_host)
    milliseconds = pl.col("time_stats.send_recv.median")
    return table.select(bytes=pl.col("size").cast(pl.Float64), seconds=milliseconds / 1e3), 1


def _apex_pair(folder: Path, gpu: str, _: int) -> tuple[pl.DataFrame, int]:
    return _apex(_csv(folder / "apex_plus" / f"{gpu}_sendrecv.csv")), 1


def _apex_ring(folder: Path, gpu: str, ring: int) -> tuple[pl.DataFrame, int]:
    table = _csv(folder / "apex_plus" / f"{gpu}_all_gather.csv")
    return _apex(table.filter(pl.col("num_gpus_per_node") == ring)), ring


def _apex(table: pl.DataFrame) -> pl.DataFrame:
    half = table.filter(pl.col("dtype") == "half")
    return half.select(bytes=pl.col("size(kb)") * 1024.0, seconds=pl.col("time(us)") / 1e6)


def _aiconfigurator(folder: Path, file: str, ring: int) -> tuple[pl.DataFrame, int]:
    path = folder / "aiconfigurator" / f"nccl_{file}.parquet"
    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    wanted = (pl.col("op_name") == "all_gather") & (pl.col("nccl_dtype") == "half") & (pl.col("num_gpus") == ring)
    table = pl.read_parquet(path).filter(wanted)
    # The size counts elements of the whole gathered message, two bytes each.
    return table.select(bytes=pl.col("message_size") * 2.0, seconds=pl.col("latency") / 1e3), ring


def _csv(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise FileNotFoundError(2, "no such file", str(path))
    return pl.read_csv(path)


READERS = {"vidur": _vidur, "apex_pair": _apex_pair, "apex_ring": _apex_ring, "aiconfigurator": _aiconfigurator}
