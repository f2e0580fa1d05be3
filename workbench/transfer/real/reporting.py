"""From what the processes reported to the record of a real multicast."""

import hashlib
from collections.abc import Mapping, Sequence

import polars as pl

from workbench.transfer.real.outcome import Path, RealMulticast, WrongBytes
from workbench.transfer.real.phases import Phase, recovery


def verify(found: Mapping[int, Sequence[str]], expected: Sequence[str]) -> None:
    """Compare the hash of every block on every node with the source's; raises `WrongBytes` where one differs."""
    wrong = [
        (node, block)
        for node, hashes in found.items()
        for block, (ours, right) in enumerate(zip(hashes, expected, strict=True))
        if ours != right
    ]
    if wrong:
        raise WrongBytes(wrong)


def report(
    phases: Sequence[Phase], message_bytes: int, path: Path, found: Mapping[int, Sequence[str]]
) -> RealMulticast:
    """The record of a run of one phase, or of two after a loss; `found` has each node's block hashes at the end."""
    job, start_s = phases[0].job, phases[0].drive.start_s
    nodes, paced = job.schedule.nodes, job.clock != "unpaced"
    table = _transfers(phases, start_s, path)
    last_s = dict(table.group_by("target").agg(pl.col("end_s").max()).iter_rows())
    late = (table["end_s"] - table["deadline_s"]).to_numpy()
    wall_s = float(table["end_s"].max())
    busy_s = sum(ended.busy_s for phase in phases for ended in phase.drive.reports.values())
    return RealMulticast(
        schedule=job.schedule.name,
        nodes=nodes,
        blocks=job.schedule.blocks,
        message_bytes=message_bytes,
        clock=job.clock,
        path=path,
        seed=job.seed,
        transfers=table.drop("deadline_s"),
        completion_s=tuple(last_s.get(node, 0.0) if node in found else float("nan") for node in range(nodes)),
        wall_s=wall_s,
        fingerprints=tuple(_fingerprint(found[node]) if node in found else "" for node in range(nodes)),
        step_s=float(job.link_s.min()) if paced else float("nan"),
        lateness_mean_s=float(late.mean()) if paced else float("nan"),
        lateness_worst_s=float(late.max()) if paced else float("nan"),
        waiting_share=max(0.0, 1.0 - busy_s / nodes / wall_s),
        recovery=recovery(*phases) if len(phases) > 1 else None,
    )


def _fingerprint(hashes: Sequence[str]) -> str:
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def _transfers(phases: Sequence[Phase], start_s: float, path: Path) -> pl.DataFrame:
    """All transfers that arrived, in order of start, in the columns that every backend uses, and their deadlines."""
    rows = []
    for job, drive in phases:
        schedule = job.schedule
        for ended in drive.reports.values():
            for index, begin_s, deadline_s, end_s in ended.arrivals:
                block = int(schedule.block[index])
                ends = int(schedule.source[index]), int(schedule.target[index])
                rows.append((begin_s - start_s, end_s - start_s, *ends, block, job.sizes[block], deadline_s - start_s))
    numbers = dict.fromkeys(["start_s", "end_s"], pl.Float64) | dict.fromkeys(["source", "target", "block"], pl.Int64)
    schema = numbers | {"bytes": pl.Float64, "deadline_s": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row").sort("start_s", "source", "target", "block")
    marks = {"kind": "weights", "model": "", "version": "", "path": path}
    return table.with_columns(pl.lit(text).alias(name) for name, text in marks.items())
