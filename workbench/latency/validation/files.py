"""Files of other people's measurements, where `WORKBENCH_DATA` holds them."""

from pathlib import Path

import polars as pl

from workbench.errors import InputError, MissingData
from workbench.paths import measured_folder

AICONFIGURATOR = "AIConfigurator, vLLM kernel sweeps, Apache-2.0 licence"
VIDUR = "Vidur, data/profiling/compute, MIT licence"
LLMSERVINGSIM = "LLMServingSim, profiler, MIT licence"


def measured_table(project: str, name: str) -> pl.DataFrame:
    """One file of measurements.

    Parameters:
        project: the folder it lies in ("aiconfigurator").
        name: the file, a CSV or Parquet.

    Raises:
        MissingData: the folder of measurements is not on this machine.
        InputError: the file is missing or broken.
    """
    folder = measured_folder()
    if folder is None:
        raise MissingData("Measured step times")
    path = folder / project / name
    if not path.is_file():
        raise InputError("no such file", "check the folder that WORKBENCH_DATA names", file=path)
    return _read(path)


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        problem = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"cannot be read ({problem})", "fetch the measurements again", file=path) from None
