"""Beyond the paper: what an operator of a pool watches, on one run."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.aegaeon import pools
from workbench.catalogue.aegaeon.pools import serve
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.pooling import PoolRun

SPAN_S = 60.0
TBT_S = 0.1
INSTANTS = 121
QUANTILES = np.linspace(0.0, 1.0, 41)
WEIGHTS, OUT, BACK = "weights to GPUs", "KV caches to hosts", "KV caches from hosts"
MOMENTS = ("its switch begins", "its model is there", "its turn ends")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    known = tables["headline"].filter(pl.col("backend") == tables["headline"]["backend"][0])
    value = {name: float(known.filter(pl.col("series") == name)["value"].mean()) for name in known["series"].unique()}
    return (
        f"{value['bytes moved, ' + WEIGHTS] / 1e12:.2g} TB of weights and {value['bytes moved, ' + OUT] / 1e12:.2g} TB "
        f"of KV caches moved; a host held up to {value['most KV caches in a host'] / 1e9:.3g} GB of these; "
        f"readers of a batch had {value['median of the least slack when ' + MOMENTS[0]]:.2g} s in hand before its "
        f"switch and {value['median of the least slack when ' + MOMENTS[2]]:.2g} s after its turn (medians)."
    )


@experiment(
    "aegaeon/operator",
    title="What does an operator of a pool watch?",
    question="How long do switches take by size of the model, what moves, how full is the hosts' memory, and what have "
    "readers in hand before and after a switch?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 1.0, "simpy": 4.0},
    draw="pooling_operator.watched",
    panels=("switches", "moved", "host", "slack"),
    say=_say,
    stochastic=True,
    agrees=(
        Agree("switches by time", "switches", ("size", "quantile"), "seconds", {("compiled", "simpy"): (0, 0)}),
        Agree("KV caches in hosts", "host", ("node", "time_s"), "bytes", {("compiled", "simpy"): (0, 0)}),
        Agree("slack", "slack", ("moment", "quantile"), "seconds", {("compiled", "simpy"): (0, 0)}),
    ),
)
def operator(
    context: Context,
    *,
    cluster: pools.Hardware = "aegaeon-h800",
    models: Annotated[int, Par("Models", low=4, high=112, step=4, free=True, source="64 in the reruns")] = 48,
    rate_per_s: Annotated[
        float, Par("Requests of a model", "1/s", low=0.02, high=0.5, log=True, free=True, source="0.1 in Fig 11a")
    ] = 0.1,
    prefill: pools.Prefill = 6,
    quota_s: pools.Quota = 4.0,
    prefetch: Annotated[
        str, Par("Prefetch", choices=("off", "on", "ideal"), status="published", source="SOSP'25 paper §5.2")
    ] = "on",
    host_kv_bytes: Annotated[
        float,
        Par(
            "Memory of a host for KV caches",
            "bytes",
            low=4e9,
            high=640e9,
            log=True,
            status="published",
            source="SOSP'25 paper Fig 9: 320 GB",
        ),
    ] = 320e9,
) -> dict[str, pl.DataFrame]:
    """Switch times by bytes of the model, bytes moved, KV caches in each host, and the slack of batches, over a minute
    of arrivals and until the last request ends."""
    run = serve(context, models, rate_per_s, SPAN_S, cluster=cluster, lead=prefill, quota_s=quota_s, prefetch=prefetch,
                host_kv_bytes=host_kv_bytes)  # fmt: skip
    took, slack = run.switches.with_columns(seconds=pl.col("end_s") - pl.col("start_s")), slack_of_turns(run, TBT_S)
    switches = [
        {"size": f"{size / 1e9:.3g} GB", "quantile": float(q), "seconds": float(part["seconds"].quantile(q, "linear"))}
        for (size,), part in sorted(took.group_by("bytes"))
        for q in QUANTILES
    ]
    moved, host = _moved(run), _host(run)
    slacks = [
        {"moment": moment, "quantile": float(q), "seconds": float(np.quantile(values, q))}
        for moment, values in zip(MOMENTS, slack.T, strict=True)
        for q in QUANTILES
        if values.size
    ]
    x = f"{models} models"
    known = [(f"bytes moved, {what}", x, float(moved[what][-1]), "bytes") for what in (WEIGHTS, OUT, BACK)]
    known.append(("most KV caches in a host", x, float(run.metrics()["host_kv_peak_bytes"]), "bytes"))
    known += [
        (f"median of the least slack when {moment}", x, float(np.median(values)) if values.size else float("nan"), "s")
        for moment, values in zip(MOMENTS, slack.T, strict=True)
    ]
    return {
        "switches": pl.DataFrame(switches, schema={"size": pl.String, "quantile": pl.Float64, "seconds": pl.Float64}),
        "moved": moved,
        "host": host,
        "slack": pl.DataFrame(slacks, schema={"moment": pl.String, "quantile": pl.Float64, "seconds": pl.Float64}),
        "headline": headline(known),
    }


def slack_of_turns(run: PoolRun, tbt_s: float) -> np.ndarray:
    """float64[turns, 3]: the least that a reader of the turn's batch has in hand, at the three `MOMENTS`, in seconds.

    A reader begins with the first token and takes one every `tbt_s`; below 0 the reader waits. The batch is what its
    model's requests on that instance are when the switch begins; turns that serve only newer ones are left out.
    """
    out, model = run.outcome, run.lowered.requests.model
    decoding = out.made > 1
    rows = []
    for start_s, ready_s, end_s, instance, of, *_ in out.turns.tolist():
        here = decoding & (out.decode_instance == instance) & (model == of)
        batch = np.flatnonzero(here & (out.first_token_s <= start_s) & (out.finish_s > start_s))
        if batch.size:
            rows.append([min(_in_hand_s(out, r, at_s, tbt_s) for r in batch) for at_s in (start_s, ready_s, end_s)])
    return np.array(rows).reshape(-1, 3)


def _in_hand_s(out: Any, r: int, at_s: float, tbt_s: float) -> float:
    """Playing time of what a request's reader holds; who has all tokens holds at least 0."""
    times = out.token_s[out.token_at[r] : out.token_at[r + 1]]
    there = int(np.searchsorted(times, at_s, side="right"))
    held_s = float(times[0]) + tbt_s * there - at_s
    return max(held_s, 0.0) if there == times.size else held_s


def _instants(run: PoolRun) -> np.ndarray:
    return np.linspace(0.0, run.span_s, INSTANTS)


def _moved(run: PoolRun) -> pl.DataFrame:
    """Bytes moved until each instant."""
    out, instants = run.outcome, _instants(run)
    kv = out.host[:, 4] * run.lowered.models.block_bytes[out.host[:, 3].astype(int)]
    parts = {
        WEIGHTS: (run.switches["end_s"].to_numpy(), run.switches["bytes"].to_numpy()),
        OUT: (out.host[kv > 0, 0], kv[kv > 0]),
        BACK: (out.host[kv < 0, 0], -kv[kv < 0]),
    }
    return pl.DataFrame({"time_s": instants} | {name: _until(instants, *part) for name, part in parts.items()})


def _host(run: PoolRun) -> pl.DataFrame:
    """KV caches in each host at each instant, in bytes and as a share of what it has for them."""
    out, instants = run.outcome, _instants(run)
    kv = out.host[:, 4] * run.lowered.models.block_bytes[out.host[:, 3].astype(int)]
    frames = []
    for node in range(run.nodes):
        mine = out.host[:, 1] == node
        held = _until(instants, out.host[mine, 0], kv[mine])
        share = held / run.lowered.pool.kv_bytes
        frames.append(pl.DataFrame({"node": node, "time_s": instants, "bytes": held, "share": share}))
    return pl.concat(frames)


def _until(instants: np.ndarray, times: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """The sum of what came until each instant."""
    order = np.argsort(times, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(amounts[order])])
    return sums[np.searchsorted(times[order], instants, side="right")]
