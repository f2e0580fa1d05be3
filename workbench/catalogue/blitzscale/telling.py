"""What is told of runs of BlitzScale's evaluation: latencies, GPU time, three times of every start, who was harmed."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from workbench.catalogue.blitzscale.evaluating import Served
from workbench.operating.harm import gaps_around_scale_outs
from workbench.serving.kernels.gaps import fill_token_times

SHARES = (*(k / 40 for k in range(1, 40)), 0.99, 0.999)
QUANTILES = {"P95": 0.95, "P99": 0.99}
VIOLATION = 5.0
"""Times the average latency is a violation (OSDI'25 paper §6.2)."""
TTFT, TBT = "TTFT", "TBT"
BINS = 120
"""Parts of a run over which GPUs are averaged for the drawing."""


def told(served: Sequence[Served]) -> dict[str, pl.DataFrame]:
    """Tables of several runs.

    - totals: a row a run: mean, P95 and P99 of TTFT and TBT, GPU seconds held and active, starts, and of starts the
      means from when one was needed until it was detected, until its first extra work, and until it served alone; P99
      of TBT of requests that ran already while an instance was started, and of all others.
    - cdf: quantiles of TTFT and TBT.
    - gpus: mean GPUs held over time.
    - over: how many requests came in each second, their mean TTFT and mean TBT.
    """
    totals, cdf, gpus, over = [], [], [], []
    for one in served:
        name = {"workload": one.workload.name, "system": one.system}
        values = latencies(one)
        row: dict[str, object] = dict(name)
        for what, seconds in values.items():
            quantiles = np.quantile(seconds, SHARES)
            cdf.append(pl.DataFrame({**{key: [text] * len(SHARES) for key, text in name.items()},
                                     "what": [what] * len(SHARES), "share": SHARES, "seconds": quantiles}))  # fmt: skip
            row |= {f"{what} {key}": statistic(seconds, key) for key in ("mean", *QUANTILES)}
        found = one.run.metrics()
        row |= {name: found[name] for name in ("done", "gpu_allocated_s", "gpu_active_s")}
        totals.append(row | _starts(one) | _harm(one))
        gpus.append(_over_time(one))
        over.append(_by_second(one))
    tables = {name: pl.concat(parts) for name, parts in (("cdf", cdf), ("gpus", gpus), ("over", over))}
    return {"totals": pl.DataFrame(totals, infer_schema_length=None), **tables}


def latencies(one: Served) -> dict[str, np.ndarray]:
    """TTFT of each request that got a token, and every gap between two tokens of a request, seconds."""
    table = one.run.requests
    ttft = (table["first_token_s"] - table["arrival_s"]).to_numpy()
    return {TTFT: ttft[~np.isnan(ttft)], TBT: _gaps_s(one)}


def _gaps_s(one: Served) -> np.ndarray:
    """Every gap between two tokens of a request."""
    out = one.run.served.outcome
    begin = np.cumsum(out.made) - out.made
    times_s = np.empty(int(out.made.sum()))
    fill_token_times(out.segments, out.iteration_end_s, out.iteration_at, begin[out.segments[:, 0]], times_s)
    request = np.repeat(np.arange(out.made.size), out.made)
    return np.diff(times_s)[request[1:] == request[:-1]]


def statistic(seconds: np.ndarray, name: str) -> float:
    """The mean, or a quantile by its name."""
    return float(seconds.mean() if name == "mean" else np.quantile(seconds, QUANTILES[name]))


def violated(one: Served, average: Served) -> float:
    """Share of requests whose TTFT or mean TBT is above five times the average of a run."""
    table, other = one.run.requests, average.run.requests
    ttft = (table["first_token_s"] - table["arrival_s"]).to_numpy()
    limit = (
        float((other["first_token_s"] - other["arrival_s"]).mean()),
        float(other["tbt_mean_s"].fill_nan(None).mean()),
    )
    late = (ttft > VIOLATION * limit[0]) | np.isnan(ttft)
    slow = table["tbt_mean_s"].fill_nan(0.0).to_numpy() > VIOLATION * limit[1]
    return float((late | slow).mean())


def weight_shares(one: Served) -> dict[str, float]:
    """Weights and KV that left or reached instances over their network cards, over what the cards could carry in the
    run's time."""
    run = one.run
    network = run.scenario.network
    span_s = float(run.allocation["time_s"].max() - run.allocation["time_s"].min())
    found = {"weights": 0.0, "kv": 0.0}
    if network is None or not span_s > 0:
        return found
    places = run.cluster.accelerators // run.deployment.tp
    for kind in found:
        table = run.links.filter((pl.col("kind") == kind) & pl.col("link").str.starts_with("egress"))
        moved = (table["bytes_per_s"] * (table["end_s"] - table["start_s"])).sum()
        found[kind] = float(moved) / (network.egress_bytes_per_s * places * span_s)
    return found


def _starts(one: Served) -> dict[str, float]:
    """Starts with weights to load, and the mean seconds from need to each of the three times."""
    table = one.run.scaleouts
    table = table.filter(~pl.col("cancelled") & (pl.col("bytes") > 0))
    found = {"starts": float(table.height), "detected_s": np.nan, "extra_s": np.nan, "alone_s": np.nan}
    if not table.height:
        return found
    first = pl.min_horizontal(pl.col("first_useful_s").fill_nan(None), pl.col("helping_s").fill_nan(None))
    needed = pl.min_horizontal(pl.col("needed_s").fill_nan(None), pl.col("detected_s"))
    times = table.select(
        detected_s=(pl.col("detected_s") - needed).mean(),
        extra_s=(pl.min_horizontal(first, "alone_s") - needed).mean(),
        alone_s=(pl.col("alone_s") - needed).mean(),
    ).row(0, named=True)
    return found | {name: float(value) for name, value in times.items()}


def _harm(one: Served) -> dict[str, float]:
    gaps = gaps_around_scale_outs(one.run.served)
    parts = {"harmed_s": gaps.during_s, "unharmed_s": gaps.outside_s}
    return {name: statistic(seconds, "P99") if seconds.size else float("nan") for name, seconds in parts.items()}


def _over_time(one: Served) -> pl.DataFrame:
    """Mean number of GPUs held in each part of the run."""
    held = one.run.allocation.group_by("time_s").agg(pl.col("gpus_allocated").sum()).sort("time_s")
    time = held["time_s"].to_numpy() - float(held["time_s"][0])
    edges = np.linspace(0.0, max(float(time[-1]), 1e-9), BINS + 1)
    total = np.concatenate([[0.0], np.cumsum(held["gpus_allocated"].to_numpy()[:-1] * np.diff(time))])
    inside = np.diff(np.interp(edges, time, total)) / np.diff(edges)
    return pl.DataFrame(
        {"workload": [one.workload.name] * BINS, "system": [one.system] * BINS, "time_s": edges[:-1], "gpus": inside}
    )


def _by_second(one: Served) -> pl.DataFrame:
    table = one.run.requests.with_columns(
        time_s=(pl.col("arrival_s") - pl.col("arrival_s").min()).floor(),
        ttft=pl.col("first_token_s") - pl.col("arrival_s"),
    )
    seconds = pl.DataFrame({"time_s": np.arange(float(table["time_s"].max()) + 1)})
    found = table.group_by("time_s").agg(
        pl.len().alias("requests"), TTFT=pl.col("ttft").mean(), TBT=pl.col("tbt_mean_s").fill_nan(None).mean()
    )
    return (
        seconds.join(found, on="time_s", how="left", maintain_order="left")
        .with_columns(pl.col("requests").fill_null(0))
        .select(
            pl.lit(one.workload.name).alias("workload"),
            pl.lit(one.system).alias("system"),
            "time_s",
            "requests",
            TTFT,
            TBT,
        )
    )
