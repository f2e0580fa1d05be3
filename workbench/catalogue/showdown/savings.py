"""GPU time is not GPUs bought: what becomes of a saving when bursts come together, hosts are kept spare, GPUs idle."""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl
import simpy
from scipy.special import bdtr

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment

CORRELATIONS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0)
FIXED, OWNED, PAID = "bought for all peaks", "scaled, bought", "scaled, pay per use"
SLOT_S = 60.0
"""Of the simulation: for so long each model's need stays what it is."""

_DAYS_PER_YEAR = 365.25


class Costs(NamedTuple):
    """What a GPU costs, in dollars an hour.

    Attributes:
        capital: of one that was bought, over its life.
        busy, idle: electricity of one that works, and of one that does not.
        rent: of one that is paid for while it is used.
    """

    capital: float
    busy: float
    idle: float
    rent: float

    def owned(self, bought: float, used: float) -> float:
        """Of `bought` GPUs an hour, `used` of which work on average."""
        return bought * self.capital + used * self.busy + (bought - used) * self.idle

    @property
    def break_even(self) -> float:
        """Share of time from which on a bought GPU is cheaper than a rented one; infinite where it never is."""
        gained = self.rent - self.busy + self.idle
        return (self.capital + self.idle) / gained if gained > 0 else math.inf


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["saved"].filter(pl.col("backend") == tables["saved"]["backend"][0])
    near = (table["correlation"] - parameters["correlation"]).abs().arg_min()
    row = table.row(near, named=True)
    text = (
        f"Where bursts correlate by {row['correlation']:g}, scaling saves {row['time_saved']:.0%} of the GPU time and "
        f"{row['gpus_saved']:.0%} of the GPUs to buy"
    )
    if row["break_even"] > 1:
        return f"{text}; a bought GPU never pays off."
    return f"{text}; a bought GPU pays off when it works {row['break_even']:.0%} of the time or more."


@experiment(
    "showdown/savings",
    title="GPU time is not GPUs bought",
    question="How many GPUs need not be bought, and what do a million tokens cost, when an autoscaler saves GPU time?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.05, "simpy": 4.0},
    draw="showdown_costs.savings",
    panels=("saved", "cost", "break-even"),
    say=_say,
    stochastic=True,
    agrees=(
        Agree("GPU time", "saved", ("correlation",), "gpu_s_per_hour", {("analytic", "simpy"): (-0.08, 0.08)}),
        Agree("GPUs to buy", "saved", ("correlation",), "gpus_to_buy", {("analytic", "simpy"): (-0.2, 0.2)}),
    ),
)
def savings(
    context: Context,
    *,
    models: Annotated[int, Par("Models", low=1, high=200, step=1, source="chosen")] = 20,
    calm: Annotated[int, Par("GPUs of a model when calm", low=0, high=8, step=1, source="chosen")] = 1,
    peak: Annotated[int, Par("GPUs of a model in a burst", low=1, high=64, step=1, source="chosen")] = 8,
    burst_share: Annotated[
        float, Par("Share of time in bursts", low=0.005, high=0.95, step=0.005, source="chosen: rare bursts")
    ] = 0.1,
    correlation: Annotated[
        float, Par("Correlation of two models' bursts", low=0, high=1, step=0.01, source="chosen: no source states one")
    ] = 0.2,
    short_share: Annotated[
        float,
        Par("Share of time with too few GPUs", low=1e-4, high=0.2, log=True, source="chosen: ten hours a month at 1 %"),
    ] = 0.01,
    spare_hosts: Annotated[int, Par("Spare hosts", low=0, high=16, step=1, source="chosen: one that is mended")] = 1,
    host_gpus: Annotated[int, Par("GPUs of a host", low=1, high=16, step=1, source="chosen: as usual")] = 8,
    tokens_per_gpu_s: Annotated[
        float,
        Par("Tokens of a GPU at work", "1/s", low=10, high=1e5, log=True, source="chosen: small batches of an 8B"),
    ] = 1000.0,
    price: Annotated[
        float, Par("Price of a GPU with its share of a host", "USD", low=1e3, high=1e5, log=True, source="chosen")
    ] = 30_000.0,
    life_years: Annotated[float, Par("Years of use", low=1, high=10, step=0.5, source="chosen")] = 4.0,
    rent: Annotated[
        float, Par("Rent of a GPU", "USD/h", low=0.1, high=20, log=True, source="chosen: lists say 2 to 12 for an H100")
    ] = 3.0,
    busy_w: Annotated[
        float,
        Par(
            "Power at work",
            "W",
            low=50,
            high=1500,
            step=10,
            status="datasheet",
            source="NVIDIA H100 data sheet, SXM form: at most 700 W; others' power is to be set here",
        ),
    ] = 700.0,
    idle_w: Annotated[
        float, Par("Power when idle", "W", low=0, high=500, step=5, source="chosen: a tenth; kept weights raise it")
    ] = 70.0,
    overhead: Annotated[
        float, Par("Power of the building over that of GPUs", low=1, high=3, step=0.05, source="chosen")
    ] = 1.3,
    usd_per_kwh: Annotated[
        float, Par("Electricity", "USD/kWh", low=0.01, high=1, log=True, source="chosen; it differs by country")
    ] = 0.1,
) -> dict[str, pl.DataFrame]:
    """GPU time, GPUs to buy and costs by correlation of bursts.

    A model needs `peak` GPUs in a burst, `calm` ones otherwise. In each slot of time it follows a coin that all models
    share with probability √ρ, else one of its own; both show a burst with the same probability, and two models
    correlate by ρ. Of n models the number in a burst is then one of two binomials. GPUs to buy are the smallest number
    that falls short in a share of time at most, and spare hosts. SimPy throws the coins.
    """  # fmt: skip
    peak = max(peak, calm, 1)
    hours = life_years * _DAYS_PER_YEAR * 24
    kwh = overhead * usd_per_kwh / 1000
    costs = Costs(price / hours, busy_w * kwh, min(idle_w, busy_w) * kwh, rent)
    context.cite("capital of a bought GPU", costs.capital, "USD/h", "computed", "price over its life")
    spare, most = spare_hosts * host_gpus, models * peak
    saved, paid = [], []
    for rho in sorted({*CORRELATIONS, correlation}):
        context.check()
        if context.backend == "analytic":
            in_burst, needed = models * burst_share, _quantile(models, burst_share, rho, 1 - short_share)
        else:
            counts = _thrown(context, models, burst_share, rho)
            in_burst, needed = float(counts.mean()), int(np.quantile(counts, 1 - short_share, method="inverted_cdf"))
        used = models * calm + (peak - calm) * in_burst
        to_buy = models * calm + (peak - calm) * needed + spare
        saved.append(
            {
                "correlation": rho, "gpu_s_per_hour": 3600 * used, "gpus_to_buy": to_buy,
                "time_saved": 1 - used / most, "gpus_saved": 1 - to_buy / (most + spare),
                "break_even": costs.break_even,
            }
        )  # fmt: skip
        tokens = 3600 * tokens_per_gpu_s * used / 1e6
        by_way = {FIXED: costs.owned(most + spare, used), OWNED: costs.owned(to_buy, used), PAID: rent * used}
        for way, usd in by_way.items():
            per_million = usd / tokens if tokens else math.nan
            paid.append({"correlation": rho, "way": way, "usd_per_hour": usd, "usd_per_million": per_million})
    table = pl.DataFrame(saved)
    known = [("GPUs to buy", row["correlation"], row["gpus_to_buy"], "1") for row in saved]
    known += [("break-even share of time", "", costs.break_even, "1")] if costs.break_even < math.inf else []
    shares = [k / 50 for k in range(1, 51)]
    lines = {"bought": [costs.owned(1.0, share) for share in shares], "pay per use": [rent * share for share in shares]}
    even = [
        {"way": way, "used_share": share, "usd_per_hour": usd}
        for way, line in lines.items()
        for share, usd in zip(shares, line, strict=True)
    ]
    return {"saved": table, "paid": pl.DataFrame(paid), "even": pl.DataFrame(even), "headline": headline(known)}


def _quantile(models: int, burst_share: float, rho: float, level: float) -> int:
    """The smallest number of models in a burst that is not exceeded in a share `level` of time."""
    follow = math.sqrt(rho)
    counts = np.arange(models + 1)
    own = (1 - follow) * burst_share
    below = burst_share * bdtr(counts, models, follow + own) + (1 - burst_share) * bdtr(counts, models, own)
    return int(np.searchsorted(below, level - 1e-12))


def _thrown(context: Context, models: int, burst_share: float, rho: float) -> np.ndarray:
    """Models in a burst in each slot of a simulation, int64[slots]."""
    slots = 3000 if context.mode == "quick" else 30_000
    random, env = context.random(f"bursts {rho:g}"), simpy.Environment()
    counts = np.zeros(slots, np.int64)

    def market() -> Iterator[simpy.Event]:
        while True:
            shared = random.random() < burst_share
            follows, own = random.random(models) < math.sqrt(rho), random.random(models) < burst_share
            counts[round(env.now / SLOT_S)] = np.where(follows, shared, own).sum()
            yield env.timeout(SLOT_S)

    env.process(market())
    env.run(until=slots * SLOT_S)
    return counts
