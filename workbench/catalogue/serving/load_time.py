"""Seconds to load a model: bytes over the rate of each tier, beside the times ServerlessLLM measured on an H100."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import polars as pl

from workbench.caching.model import Tier, load_seconds
from workbench.caching.simulated import simulate_loading
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.measured_loads import SOURCE, measured_loads
from workbench.catalogue.parameters import Par
from workbench.catalogue.published import published
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.errors import UserError

LOADERS = ("ServerlessLLM", "safetensors")
STORAGES = ("NVMe", "host memory")
MODELS = {"Llama-3.1-8B": "llama-3.1-8b", "Qwen3-32B": "qwen3-32b", "DeepSeek-R1-Qwen-32B": "qwen2.5-32b"}


def series_of(loader: str, storage: str) -> str:
    """The series text of a loader and a place."""
    return f"time to load, {loader} from {storage}"


class Case(NamedTuple):
    """One bar: how, from where, what, and how large it is."""

    loader: str
    storage: str
    model: str
    weight_bytes: float


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    table = tables["loads"]
    table = table.filter((pl.col("backend") == table["backend"][0]) & pl.col("measured_s").is_not_null())
    error = (table["seconds"] / table["measured_s"] - 1).abs()
    worst = table.row(int(error.arg_max()), named=True)
    return (
        f"{int((error <= 0.15).sum())} of {len(table)} measured loads lie within 15 % of bytes over bandwidth; the "
        f"worst is {worst['model']} by {worst['loader']} from {worst['storage']}, "
        f"{worst['seconds']:.3g} s beside {worst['measured_s']:.3g} s."
    )


_RATE = Assumption(
    "Qwen3-32B tells the rate for all; the other model of its size loads a fifth faster, and the data do not say why",
    {"safetensors_memory_bytes_per_s": 6.0e9},
)
_NOTE = "the rate was measured with another model"


@experiment(
    "serving/load-time",
    title="How long does a model take to load?",
    question="Do bytes over the bandwidth of each tier tell how long a model takes from NVMe and from host memory?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.02, "simpy": 1},
    draw="loading.load_time",
    panels=("times", "errors"),
    say=_say,
    matches=(
        Match((series_of("ServerlessLLM", "NVMe"),), fitted=("Llama-3.1-8B",), note=_NOTE),
        Match((series_of("ServerlessLLM", "host memory"),), fitted=("Qwen3-32B",), note=_NOTE),
        Match((series_of("safetensors", "NVMe"),), fitted=("Llama-3.1-8B",), note=_NOTE),
        Match((series_of("safetensors", "host memory"),), fitted=("Qwen3-32B",), note=_NOTE, assumptions=(_RATE,)),
    ),
    agrees=(
        Agree(
            "time to load", "loads", ("loader", "storage", "model"), "seconds", {("analytic", "simpy"): (-0.01, 0.01)}
        ),
    ),
)
def load_time(
    context: Context,
    *,
    cluster: Annotated[str, Par("Host", profile="cluster", status="published", source=SOURCE)] = "serverlessllm-h100",
    model: Annotated[
        str, Par("Also for this model", profile="model", free=True, source="any; not among the measured ones")
    ] = "llama-3-70b",
    rates: Annotated[
        str,
        Par(
            "Rates of NVMe and PCIe",
            choices=("achievable", "nominal"),
            status="measured",
            source="what the loader reached with one of the models; or the data sheets",
        ),
    ] = "achievable",
    overlap: Annotated[
        bool, Par("ServerlessLLM: chunks overlap", source="its loader reads, pins and copies chunks in a pipeline")
    ] = True,
    chunk_bytes: Annotated[
        float,
        Par(
            "Chunk",
            "bytes",
            low=2**20,
            high=2**30,
            log=True,
            source="64 MiB, as BlitzScale's loader reads; small against any model",
        ),
    ] = 64.0 * 2**20,
    safetensors_nvme_bytes_per_s: Annotated[
        float,
        Par(
            "safetensors from NVMe",
            "bytes/s",
            low=1e9,
            high=30e9,
            log=True,
            status="measured",
            source=f"{SOURCE}: Llama-3.1-8B, 16.06 GB in 4.437 s",
        ),
    ] = 3.62e9,
    safetensors_memory_bytes_per_s: Annotated[
        float,
        Par(
            "safetensors from the page cache",
            "bytes/s",
            low=1e9,
            high=60e9,
            log=True,
            status="measured",
            source=f"{SOURCE}: Qwen3-32B, 65.52 GB in 12.466 s",
        ),
    ] = 5.256e9,
) -> dict[str, pl.DataFrame]:
    """Seconds by loader, place and model, beside the measured means and, where the files are here, every measured run.

    From NVMe the weights pass SSD and PCIe, from host memory PCIe alone. ServerlessLLM overlaps the two legs chunk by
    chunk; safetensors has one rate from end to end for each place.
    """  # fmt: skip
    host = context.cluster(cluster).host
    if host.ssd is None:
        raise UserError(f"Cluster {cluster} states no SSD; choose one that does, such as serverlessllm-h100.")
    ssd = context.cite(f"SSD, {rates} rate", host.ssd.rate(rates))
    pcie = context.cite(f"PCIe, {rates} rate", host.accelerator.speed("host_bytes_per_s", rates))
    ways = {
        ("ServerlessLLM", "NVMe"): (Tier("SSD", ssd), Tier("PCIe", pcie)),
        ("ServerlessLLM", "host memory"): (Tier("PCIe", pcie),),
        ("safetensors", "NVMe"): (Tier("SSD by safetensors", safetensors_nvme_bytes_per_s),),
        ("safetensors", "host memory"): (Tier("page cache by safetensors", safetensors_memory_bytes_per_s),),
    }
    load = load_seconds if context.backend == "analytic" else simulate_loading
    means = {(row["series"], row["x"]): row["value"] for row in published("serving/load-time").to_dicts()}
    rows, known = [], []
    for case in _cases(context, model):
        context.tell(f"{case.model} by {case.loader} from {case.storage}")
        chunk = chunk_bytes if overlap or case.loader == "safetensors" else None
        seconds = load(case.weight_bytes, ways[case.loader, case.storage], chunk)
        series = series_of(case.loader, case.storage)
        measured = means.get((series, case.model))
        rows.append({**case._asdict(), "seconds": seconds, "measured_s": measured})
        known.append((series, case.model, seconds, "s"))
    tables = {"loads": pl.DataFrame(rows), "headline": headline(known)}
    if (runs := measured_loads()) is not None:
        context.cite("measured loads", len(runs), "1", "measured", SOURCE)
        tables["runs"] = runs
    return tables


def _cases(context: Context, model: str) -> list[Case]:
    sizes = {name: context.model(profile).weight_bytes for name, profile in MODELS.items()}
    own = context.model(model)
    sizes.setdefault(own.label or own.name, own.weight_bytes)
    return [
        Case(loader, storage, name, float(size))
        for loader in LOADERS
        for storage in STORAGES
        for name, size in sizes.items()
    ]
