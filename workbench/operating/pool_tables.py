"""Tables of a pool's run in the form that every run has, from the arrays of the pooling engine."""

import numpy as np
import polars as pl

from workbench.pooling.model import PoolRun
from workbench.pooling.model.lowered import DONE, FAILED, REJECTED
from workbench.profiles import SLO
from workbench.serving.model.measuring import SHARES

POOL = "pool"
"""Of the table of GPUs: those of a pool belong to no model."""


def iterations_and_segments(served: PoolRun, start_s: float) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Steps that gave a token, and which token of which request each gave; see `PooledRun`.

    An instance makes one step at a time, so that tokens of one instant on one instance are of one step.
    """
    out = served.outcome
    request = np.repeat(np.arange(out.made.size), out.made)
    index = np.arange(request.size) - out.token_at[request]
    instance = np.where(index == 0, out.prefill_instance[request], out.decode_instance[request])
    steps, step = np.unique(np.column_stack([instance, out.token_s]), axis=0, return_inverse=True)
    step, of = step.reshape(-1), steps[:, 0].astype(np.int64)
    first = np.searchsorted(of, np.arange(served.lowered.pool.node.size))
    number = np.arange(of.size) - first[of]
    iterations = pl.DataFrame({"instance": of, "iteration": number, "end_s": steps[:, 1] + start_s})
    at, goes_on = number[step], np.zeros(request.size, bool)
    goes_on[1:] = (np.diff(request) == 0) & (np.diff(instance) == 0) & (np.diff(at) == 1)
    begins = np.flatnonzero(~goes_on)
    segments = pl.DataFrame(
        {
            "request_id": served.asked["request_id"].gather(request[begins]),
            "first_index": index[begins],
            "count": np.diff(np.append(begins, request.size)),
            "instance": instance[begins],
            "first_iteration": at[begins],
        }
    )
    return iterations, segments


def timeline(served: PoolRun, start_s: float) -> pl.DataFrame:
    """`time_s, entity, kind, value`; see `PooledRun`."""
    out, names = served.outcome, ("request " + served.asked["request_id"].cast(pl.String)).to_list()
    switches = served.switches
    instances = [f"instance {k}" for k in switches["instance"]]
    parts = [
        (served.lowered.requests.arrival_s, names, "arrival", np.full(len(names), -1)),
        (out.first_token_s, names, "first token", out.prefill_instance),
        (out.finish_s, names, "finish", np.where(out.made > 1, out.decode_instance, out.prefill_instance)),
        (switches["start_s"].to_numpy(), instances, "switch begins", switches["instance"].to_numpy()),
        (switches["end_s"].to_numpy(), instances, "switch ends", switches["instance"].to_numpy()),
    ]
    schema = {"time_s": pl.Float64, "entity": pl.String, "kind": pl.String, "value": pl.Float64}
    frames = [
        pl.DataFrame(
            {"time_s": time_s + start_s, "entity": entity, "kind": [kind] * len(entity), "value": value},
            schema=schema, strict=False,
        )
        for time_s, entity, kind, value in parts
    ]  # fmt: skip
    return pl.concat(frames).filter(pl.col("time_s").is_not_nan()).sort("time_s", maintain_order=True)


def allocation(served: PoolRun, start_s: float, accelerators: int) -> pl.DataFrame:
    """`time_s, model, gpus_allocated, gpus_active`; see `PooledRun`."""
    out, size = served.outcome, served.lowered.pool.node.size
    begun = served.lowered.requests.arrival_s + out.wait_s
    has = ~np.isnan(begun) & ~np.isnan(out.finish_s)
    apart = has & (out.decode_instance >= 0) & (out.decode_instance != out.prefill_instance)
    spans = [
        (out.prefill_instance[has], begun[has], np.where(apart, out.first_token_s, out.finish_s)[has]),
        (out.decode_instance[apart], out.first_token_s[apart], out.finish_s[apart]),
    ]
    changes: dict[float, int] = {0.0: 0, served.span_s: 0}
    for k in range(size):
        mine = [np.column_stack([begin, end])[where == k] for where, begin, end in spans]
        for begin, end in _joined(np.concatenate(mine)):
            changes[begin] = changes.get(begin, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    times = sorted(changes)
    active = np.cumsum([changes[time_s] for time_s in times])
    held = [size if time_s < served.span_s else 0 for time_s in times]
    return pl.DataFrame(
        {
            "time_s": np.array(times) + start_s,
            "model": [POOL] * len(times),
            "gpus_allocated": np.array(held, np.int64) * accelerators,
            "gpus_active": active.astype(np.int64) * accelerators,
        }
    )


def _joined(spans: np.ndarray) -> list[tuple[float, float]]:
    """Spans of time (begin, end), those that overlap or touch as one."""
    found: list[tuple[float, float]] = []
    for begin, end in spans[np.lexsort((spans[:, 1], spans[:, 0]))].tolist():
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def transfers(served: PoolRun, start_s: float) -> pl.DataFrame:
    """`start_s, end_s, source, target, block, bytes, kind, model, version, path`; see `PooledRun`."""
    node = served.lowered.pool.node
    table = served.switches
    where = table["instance"].to_numpy()
    return table.select(
        pl.col("start_s") + start_s,
        pl.col("end_s") + start_s,
        pl.Series("source", [f"host {k}" for k in node[where]], dtype=pl.String),
        pl.Series("target", [f"instance {k}" for k in where], dtype=pl.String),
        pl.lit(-1).alias("block"),
        "bytes",
        pl.lit("weights").alias("kind"),
        "model",
        pl.lit(0).alias("version"),
        pl.col("kind").alias("path"),
    ).sort("start_s", maintain_order=True)


def found_metrics(served: PoolRun, slo: SLO | None, accelerators: int) -> dict[str, float]:
    """The metrics of a run, by the names that those of all systems have, and a pool's own."""
    out, own, span_s = served.outcome, served.metrics(), served.span_s
    arrival_s = served.lowered.requests.arrival_s
    instances = served.lowered.pool.node.size
    counts = {name: float((out.status == status).sum()) for name, status in
              (("done", DONE), ("rejected", REJECTED), ("failed", FAILED))}  # fmt: skip
    found = {
        "arrived": float(out.status.size),
        **counts,
        "inside": out.status.size - sum(counts.values()),
        "span_s": span_s,
        "requests_per_s": counts["done"] / span_s if span_s else float("nan"),
        "output_tokens_per_s": float(out.made.sum()) / span_s if span_s else float("nan"),
        "gpu_allocated_s": accelerators * instances * span_s,
        "gpu_active_s": accelerators * float(out.busy_s.sum()),
        "peak_gpus": float(accelerators * instances),
    }
    with np.errstate(invalid="ignore"):
        latencies = {
            "ttft": out.first_token_s - arrival_s,
            "tpot": (out.finish_s - out.first_token_s) / np.where(out.made > 1, out.made - 1, np.nan),
            "e2e": out.finish_s - arrival_s,
        }
    for name, values in latencies.items():
        values = values[~np.isnan(values)]
        found[f"{name}_mean_s"] = float(values.mean()) if values.size else float("nan")
        for share in SHARES:
            found[f"{name}_p{100 * share:g}_s"] = float(np.quantile(values, share)) if values.size else float("nan")
    found |= {name: own[name] for name in ("switches", "turns", "switching_share", "host_kv_peak_bytes")}
    if slo is not None:
        both = served.kept(slo, "request").sum()
        found["goodput_per_s"] = float(both) / span_s if span_s else float("nan")
        shares = served.attainment(slo)
        found |= {f"attainment_{name}": share for name, share in shares.items()}
        found["attainment"] = shares[slo.definition]
    return found
