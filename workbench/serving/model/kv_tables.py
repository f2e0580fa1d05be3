"""KV caches that were sent between instances, as tables: every transfer, and how fast links ran."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from workbench.serving.model.lowered import Lowered, Outcome
from workbench.transfer.kernels.fairness import max_min_fair

TRANSFERS = {
    "start_s": pl.Float64, "end_s": pl.Float64, "source": pl.String, "target": pl.String, "block": pl.Int64,
    "bytes": pl.Float64, "kind": pl.String, "model": pl.String, "version": pl.Int64, "path": pl.String,
}  # fmt: skip
LINKS = {
    "start_s": pl.Float64, "end_s": pl.Float64, "link": pl.String, "kind": pl.String, "bytes_per_s": pl.Float64,
}  # fmt: skip


def kv_transfers(lowered: Lowered, outcome: Outcome, models: Sequence[str]) -> pl.DataFrame:
    """`start_s, end_s, source, target, block, bytes, kind, model, version, path`, in order of start.

    The block is the row of the request in the request table. A transfer that was cancelled by a failure, or had not
    ended with the run, has no end, and brought 0 bytes.

    Parameters:
        lowered, outcome: the run.
        models: names in the order of their numbers.
    """
    start_s, end_s, request, source, target, size = outcome.flows.T
    whole = [column.astype(np.int64).tolist() for column in (request, source, target)]
    number = lowered.requests.model[whole[0]] if whole[0] else np.empty(0, np.int64)
    columns = {
        "start_s": start_s,
        "end_s": end_s,
        "source": [f"instance {j}" for j in whole[1]],
        "target": [f"instance {j}" for j in whole[2]],
        "block": whole[0],
        "bytes": np.where(np.isnan(end_s), 0.0, size),
        "kind": ["kv"] * len(start_s),
        "model": [models[m] for m in number.tolist()],
        "version": [0] * len(start_s),
        "path": [f"{_out_of(i)} > {_into(j)}" for i, j in zip(*whole[1:], strict=True)],
    }
    return pl.DataFrame(columns, schema=TRANSFERS)


def kv_links(lowered: Lowered, outcome: Outcome) -> pl.DataFrame:
    """`start_s, end_s, link, kind, bytes_per_s` of every link while anything moved over it.

    Rates are worked out anew from the starts and ends of the transfers; transfers over links without bounds are left
    out, since they take no time.
    """
    network = lowered.network
    if network is None or not len(outcome.flows):
        return pl.DataFrame(schema=LINKS)
    start_s, _, _, source, target, size = outcome.flows.T
    end_s = _over_at(lowered, outcome)
    ports = np.column_stack([source, network.egress.size + target]).astype(np.int64)
    capacity = np.concatenate([network.egress, network.ingress])
    changes = sorted([(time_s, 1, k) for k, time_s in enumerate(start_s.tolist())]
                     + [(time_s, 0, k) for k, time_s in enumerate(end_s.tolist())])  # fmt: skip
    left, active, rows = size.copy(), {}, []
    for (now_s, begins, k), (until_s, _, _) in zip(changes, [*changes[1:], changes[-1]], strict=True):
        if begins:
            active[k] = None
        else:
            active.pop(k, None)
        if until_s > now_s and active:
            flows = np.array(sorted(active))
            moved = np.minimum(_rates(ports[flows], capacity) * (until_s - now_s), left[flows])
            left[flows] -= moved
            moved[np.isinf(capacity[ports[flows]]).all(axis=1)] = 0
            carried = np.bincount(ports[flows].ravel(), np.repeat(moved, 2), capacity.size) / (until_s - now_s)
            rows += [(now_s, until_s, port, carried[port]) for port in np.flatnonzero(carried).tolist()]
    return _joined(rows, network.egress.size)


def _over_at(lowered: Lowered, outcome: Outcome) -> np.ndarray:
    """When each transfer was over: at its end, with the first failure of its source or target, or with the run."""
    over_s, failures = outcome.flows[:, 1].copy(), lowered.failures
    for k in np.flatnonzero(np.isnan(over_s)):
        start_s, ends = outcome.flows[k, 0], outcome.flows[k, 3:5]
        failed = failures.time_s[np.isin(failures.instance, ends) & (failures.time_s >= start_s)]
        over_s[k] = failed.min(initial=lowered.until_s)
    return over_s


def _rates(ports: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Max-min fair rates of transfers that hold two ports each; infinite where neither has a bound."""
    bounded = np.isfinite(capacity)
    place = np.cumsum(bounded) - 1
    held = bounded[ports]
    first = np.concatenate([[0], np.cumsum(held.sum(axis=1))])
    rates = np.empty(len(ports))
    max_min_fair(first, place[ports[held]], capacity[bounded], rates)
    return rates


def _joined(rows: list[tuple[float, float, int, float]], instances: int) -> pl.DataFrame:
    """Rows of one link that follow each other at one rate are one."""
    last: dict[int, list] = {}
    found = []
    for start_s, end_s, port, rate in rows:
        before = last.get(port)
        if before and before[1] == start_s and before[4] == rate:
            before[1] = end_s
        else:
            name = _out_of(port) if port < instances else _into(port - instances)
            last[port] = [start_s, end_s, name, "kv", rate]
            found.append(last[port])
    return pl.DataFrame(found, schema=LINKS, orient="row").sort("start_s", "link", maintain_order=True)


def _out_of(instance: int) -> str:
    return f"egress of instance {instance}"


def _into(instance: int) -> str:
    return f"ingress of instance {instance}"
