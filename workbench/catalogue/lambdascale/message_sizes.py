"""What experiments on message sizes share: times by size, and the fit of α and B that other sizes are laid beside."""

from typing import Annotated

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree
from workbench.transfer.model import Hockney, fit_hockney

SIZES = tuple(1 << power for power in range(14, 27))
READINGS = {"quick": 5, "full": 15}
SWEPT = "receiving 1 GB, x = bytes of a message"
HELD_OUT = Agree(
    "time over α + bytes/B fitted to other sizes",
    "held_out",
    ("message_bytes",),
    "over_formula",
    {("analytic", "torch"): (-0.5, 0.5)},
)

OverheadUs = Annotated[
    float,
    Par(
        "Formula: overhead of a message", "µs", low=1, high=2000, log=True, free=True, source="about the recorded run's"
    ),
]
Bandwidth = Annotated[
    float, Par("Formula: bandwidth", "GB/s", low=0.1, high=100, log=True, free=True, source="about the recorded run's")
]


def by_formula(overhead_us: float, gb_per_s: float) -> dict[str, pl.DataFrame]:
    """Seconds for a gigabyte in messages of each size, and the fit that they lie on."""
    cost = Hockney(alpha_s=overhead_us * 1e-6, bytes_per_s=gb_per_s * 1e9)
    rows = {"message_bytes": SIZES, "gigabyte_s": [cost.travel_s(size) * 1e9 / size for size in SIZES]}
    same = {"message_bytes": SIZES, "over_formula": [1.0] * len(SIZES)}
    return {"sweep": pl.DataFrame(rows), "held_out": pl.DataFrame(same), "fit": pl.DataFrame([cost.model_dump()])}


def measured(context: Context, message_s: np.ndarray) -> dict[str, pl.DataFrame]:
    """The same of measured seconds of one message of each size; α and B are fitted to every second size."""
    cost = fit_hockney(np.ones(len(SIZES[::2])), SIZES[::2], message_s[::2], relative=True)
    context.cite("overhead of a message", cost.alpha_s, "s", "measured", "fitted to every second size of this run")
    context.cite("bandwidth of messages", cost.bytes_per_s, "bytes/s", "measured", "fitted to every second size")
    over = [seconds / cost.travel_s(size) for size, seconds in zip(SIZES, message_s.tolist(), strict=True)]
    return {
        "sweep": pl.DataFrame({"message_bytes": SIZES, "gigabyte_s": (message_s * 1e9 / np.array(SIZES)).tolist()}),
        "held_out": pl.DataFrame({"message_bytes": SIZES[1::2], "over_formula": over[1::2]}),
        "fit": pl.DataFrame([cost.model_dump()]),
    }


def elbow(tables: dict[str, pl.DataFrame]) -> str:
    """One clause on the fit of the last backend that gave one."""
    fit = tables["fit"].row(-1, named=True)
    half = fit["alpha_s"] * fit["bytes_per_s"]
    return (
        f"A message costs {fit['alpha_s'] * 1e6:.0f} µs and its bytes over {fit['bytes_per_s'] / 1e9:.2f} GB/s, so "
        f"below {half / 1024:,.0f} KiB overhead takes more than half of the time"
    )
