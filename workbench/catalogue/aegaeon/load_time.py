"""§4.2: the least time to load a model, and what paper, artifact and simulator reckon with."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench import profiles
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.pooling import ByRate
from workbench.pooling.model.facts import facts

SIZES = {"7B": "qwen2.5-7b", "9B": "yi-1.5-9b", "13B": "llama-2-13b"}
NOMINAL = {"PCIe 4.0": 32e9, "PCIe 5.0": 64e9}
LEAST = "least time to load 13B in BF16"
PAPER = "switch time at 0.625 of the nominal bandwidth"
ARTIFACT = "switch time assumed by the artifact's scheduler (0.15 of the nominal bandwidth)"
SIMULATOR = "switch time assumed by the artifact's simulator (16 GB/s)"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["curves"].filter(pl.col("bytes") == parameters["weight_bytes"])
    parts = [f"{row['seconds']:.3g} s {row['way']}" for row in table.to_dicts()]
    return f"{parameters['weight_bytes'] / 1e9:g} GB take {', '.join(parts)}."


@experiment(
    "aegaeon/load-time",
    title="How fast can a model be loaded?",
    question="How long does a model take from host memory to a GPU, by what the paper, its artifact and its simulator "
    "assume?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="pooling_formulas.loads",
    say=_say,
    matches=(Match(tolerance=0.01),),
)
def load_time(
    context: Context,
    *,
    weight_bytes: Annotated[
        float, Par("Weights", "bytes", low=1e9, high=150e9, log=True, free=True, source="26 GB in §4.2: 13B in BF16")
    ] = 26e9,
    nominal_bytes_per_s: Annotated[
        float,
        Par("Nominal rate of PCIe", "bytes/s", low=8e9, high=128e9, log=True, free=True, source="PCIe 5.0 of an H800"),
    ] = 64e9,
) -> dict[str, pl.DataFrame]:
    """Seconds against bytes at the nominal rate, at the shares of it that paper and artifact assume, and at 16 GB/s."""
    variants = facts().variants
    fraction = context.cite("share of the nominal rate, paper", variants["paper"].assumed_fraction)
    assumed = context.cite("share of the nominal rate, artifact", variants["artifact"].assumed_fraction)
    theirs = context.cite("nominal rate, artifact", variants["artifact"].assumed_nominal_bytes_per_s)
    simulated = context.cite("rate of the simulator", variants["simulator"].load_bytes_per_s)
    ways = {
        "at the nominal rate": nominal_bytes_per_s,
        "at 0.625 of it (paper)": fraction * nominal_bytes_per_s,
        "at 0.15 of it (the artifact's scheduler)": assumed * nominal_bytes_per_s,
        "at 16 GB/s (the artifact's simulator)": simulated,
    }
    sizes = sorted({*np.geomspace(1e9, 150e9, 40).tolist(), weight_bytes})
    rows = [
        {"way": way, "bytes": size, "seconds": ByRate(bytes_per_s=rate).of(size)}
        for way, rate in ways.items()
        for size in sizes
    ]
    known = [(LEAST, "26 GB over 32 GB/s", ByRate(bytes_per_s=NOMINAL["PCIe 4.0"]).of(26e9), "s")]
    for link, nominal in NOMINAL.items():
        for size in (14e9, 26e9):
            known.append((PAPER, f"{size / 1e9:g} GB, {link}", size / (fraction * nominal), "s"))
    for label, name in SIZES.items():
        model = profiles.model(name)
        parameters = float(model.override("aegaeon-artifact", "parameters"))
        known.append((ARTIFACT, f"{label}, H800", 2 * parameters / (assumed * theirs), "s"))
        known.append((SIMULATOR, label, float(model.override("aegaeon-artifact", "weight_bytes")) / simulated, "s"))
    return {"curves": pl.DataFrame(rows), "headline": headline(known)}
