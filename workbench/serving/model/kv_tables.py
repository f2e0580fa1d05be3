"""KV caches that were sent between instances, as tables; and how fast links ran for these and for weights."""

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

BACK, FAILED = 2, 3
"""What happens to links, in the order in which it does, behind starts and ends of transfers."""


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
        "version": [_version_of(outcome, *of) for of in zip(whole[1], start_s.tolist(), strict=True)],
        "path": [f"{_out_of(i)} > {_into(j)}" for i, j in zip(*whole[1:], strict=True)],
    }
    return pl.DataFrame(columns, schema=TRANSFERS)


def _version_of(outcome: Outcome, row: int, now_s: float) -> int:
    """Of the weights of a row at some time: that of its latest load."""
    if not outcome.load_version.size:
        return 0
    there = np.flatnonzero((outcome.loads[:, 2] == row) & (outcome.loads[:, 1] <= now_s))
    return int(outcome.load_version[there[-1]]) if there.size else 0


def kv_links(lowered: Lowered, outcome: Outcome) -> pl.DataFrame:
    """`start_s, end_s, link, kind, bytes_per_s` of every link while anything moved over it.

    Rates are worked out anew from the starts and ends of the transfers, of KV and of weights that come by chains;
    transfers over links without bounds are left out, since they take no time.
    """
    network = lowered.network
    if network is None or not len(outcome.flows) + len(outcome.chains):
        return pl.DataFrame(schema=LINKS)
    chains, n, by_kv = outcome.chains, network.egress.size, len(outcome.flows)
    ports = [np.array([source, n + target], np.int64) for source, target in outcome.flows[:, 3:5]]
    ports += [_ports_of(outcome, k, n) for k in range(len(chains))]
    capacity = np.concatenate([network.egress, network.ingress, network.host_egress])
    start_s = np.concatenate([outcome.flows[:, 0], chains[:, 0]])
    over_s = np.where(np.isnan(chains[:, 2]), lowered.until_s, chains[:, 2])
    end_s = np.concatenate([_over_at(lowered, outcome), over_s])
    changes = [(time_s, 1, k) for k, time_s in enumerate(start_s.tolist())]
    changes += [(time_s, 0, k) for k, time_s in enumerate(end_s.tolist())]
    changes = sorted(changes + _outages(lowered))
    nominal = capacity.copy()
    left, active, rows = np.concatenate([outcome.flows[:, 5], chains[:, 5]]), {}, []
    for (now_s, begins, k), (until_s, _, _) in zip(changes, [*changes[1:], changes[-1]], strict=True):
        if begins == 1:
            active[k] = None
        elif begins == 0:
            active.pop(k, None)
        else:
            capacity[k] = nominal[k] if begins == BACK else 0
        if until_s > now_s and active:
            flows = np.array(sorted(active))
            held = [ports[k] for k in flows]
            moved = np.minimum(_rates(held, capacity) * (until_s - now_s), left[flows])
            left[flows] -= moved
            moved[[np.isinf(capacity[own]).all() for own in held]] = 0
            sizes = np.array([own.size for own in held])
            for kind, mine in (("kv", flows < by_kv), ("weights", flows >= by_kv)):
                if mine.any():
                    over = np.concatenate([own for own, wanted in zip(held, mine, strict=True) if wanted])
                    carried = np.bincount(over, np.repeat(moved[mine], sizes[mine]), capacity.size) / (until_s - now_s)
                    rows += [(now_s, until_s, port, kind, carried[port]) for port in np.flatnonzero(carried).tolist()]
    return _joined(rows, n)


def _outages(lowered: Lowered) -> list[tuple[float, int, int]]:
    """(time, `BACK` or `FAILED`, port) of every link that fails."""
    n = lowered.instances.model.size
    place = np.arange(n) if lowered.scaling is None else lowered.scaling.place
    places, found = 1 + int(place.max()), []
    for time_s, port, back_s in zip(*(column.tolist() for column in lowered.outages), strict=True):
        if port >= 2 * places:
            ports = [2 * n + port - 2 * places]
        else:
            ports = (np.flatnonzero(place == port % places) + n * (port >= places)).tolist()
        found += [(time_s, FAILED, one) for one in ports] + [(back_s, BACK, one) for one in ports]
    return found


def _ports_of(outcome: Outcome, flow: int, instances: int) -> np.ndarray:
    """The ports that a flow of weights holds, see `workbench.serving.model.scaled`."""
    source = int(outcome.chains[flow, 4])
    rows = outcome.hops[outcome.hops[:, 0] == flow, 1].astype(np.int64)
    first = source if source < instances else source + instances
    return np.concatenate([[first], instances + rows, rows[:-1]])


def _over_at(lowered: Lowered, outcome: Outcome) -> np.ndarray:
    """When each transfer was over: at its end, with the first failure of its source or target, or with the run."""
    over_s, failures = outcome.flows[:, 1].copy(), lowered.failures
    for k in np.flatnonzero(np.isnan(over_s)):
        start_s, ends = outcome.flows[k, 0], outcome.flows[k, 3:5].astype(np.int64)
        ends = ends if lowered.scaling is None else lowered.scaling.place[ends]
        failed = failures.time_s[np.isin(failures.instance, ends) & (failures.time_s >= start_s)]
        over_s[k] = failed.min(initial=lowered.until_s)
    return over_s


def _rates(ports: list[np.ndarray], capacity: np.ndarray) -> np.ndarray:
    """Max-min fair rates of transfers that hold some ports each; infinite where none has a bound."""
    bounded = np.isfinite(capacity)
    place = np.cumsum(bounded) - 1
    held = [place[own[bounded[own]]] for own in ports]
    rates = np.empty(len(ports))
    max_min_fair(np.cumsum([0, *map(len, held)]), np.concatenate(held), capacity[bounded], rates)
    return rates


def _joined(rows: list[tuple[float, float, int, str, float]], instances: int) -> pl.DataFrame:
    """Rows of one link and kind that follow each other at one rate are one."""
    last: dict[tuple[int, str], list] = {}
    found = []
    for start_s, end_s, port, kind, rate in rows:
        before = last.get((port, kind))
        if before and before[1] == start_s and before[4] == rate:
            before[1] = end_s
        else:
            last[port, kind] = [start_s, end_s, _named(port, instances), kind, rate]
            found.append(last[port, kind])
    return pl.DataFrame(found, schema=LINKS, orient="row").sort("start_s", "link", maintain_order=True)


def _named(port: int, instances: int) -> str:
    if port >= 2 * instances:
        return f"network out of the memory of host {port - 2 * instances}"
    return _out_of(port) if port < instances else _into(port - instances)


def _out_of(instance: int) -> str:
    return f"egress of instance {instance}"


def _into(instance: int) -> str:
    return f"ingress of instance {instance}"
