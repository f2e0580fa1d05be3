"""What Figure 8 shows beside its few numbers: who moves with k, the plateau, who comes last, and how firm that is."""

import itertools
import math

import polars as pl

from workbench.catalogue.judging import Draft
from workbench.catalogue.lambdascale.systems import BLOCKS, LAMBDASCALE, SERVERLESSLLM, SYSTEMS, decode_s
from workbench.results import Reading, Verdict

OVERHEADS_S = (0.001, 0.005)
"""Within these every verdict of the figure should hold: the overhead of a dispatch is not published."""

STILL = 0.05
"""First tokens that move by less do not move."""

SHORT = 0.25
"""A plateau that lasts less than this share of the next one is hardly visible."""


def judge(draft: Draft) -> list[Verdict]:
    """All special verdicts, on the first backend that answered."""
    table = draft.tables["starts"]
    table = table.filter(pl.col("backend") == table["backend"][0]).sort("model", "sources")
    return [
        _moves(draft, table),
        _stays(draft, table),
        _last(draft, table),
        _plateau(draft, table),
        *_firm(draft, table),
    ]


def _moves(draft: Draft, table: pl.DataFrame) -> Verdict:
    firsts = {name: part["first_s"].to_list() for name, part in _by_model(table, LAMBDASCALE)}
    held = all(a > b for values in firsts.values() for a, b in itertools.pairwise(values))
    ours = "; ".join(f"{name}: {', '.join(f'{value:.3g}' for value in values)} s" for name, values in firsts.items())
    return _verdict(draft, "λScale's first tokens come sooner the more replicas there are", "falls with k", ours, held)


def _stays(draft: Draft, table: pl.DataFrame) -> Verdict:
    most = _largest_move(table)
    claim = "first tokens of the baselines do not move with k"
    why = ""
    if most >= STILL and draft.comparable:
        moved = _largest_move(draft.rerun({"large_nodes": 12})["starts"])
        why = (
            "Assumed here: 70B runs on the 6 nodes of 24 GPUs, so that k = 4 leaves NCCL a group of 3, whose record is "
            f"shorter; with large_nodes = 12 it is at most {moved:.1%}"
        )
    return _verdict(draft, claim, "no change", f"at most {most:.1%}", most < STILL, why)


def _largest_move(table: pl.DataFrame) -> float:
    """By how much a baseline's first tokens differ at most between numbers of replicas, as a share."""
    parts = [part["first_s"] for system in SYSTEMS[1:] for _, part in _by_model(table, system)]
    return max(float(first.max() / first.min() - 1) for first in parts)


def _last(draft: Draft, table: pl.DataFrame) -> Verdict:
    found = [part.sort("first_s")["system"][-1] for _, part in table.group_by("model", "sources", maintain_order=True)]
    held = all(system == SERVERLESSLLM for system in found)
    return _verdict(
        draft, "ServerlessLLM's first tokens come last", SERVERLESSLLM, ", ".join(dict.fromkeys(found)), held
    )


def _plateau(draft: Draft, table: pl.DataFrame) -> Verdict:
    part = table.filter((pl.col("system") == LAMBDASCALE) & (pl.col("model") == "7B")).sort("sources")
    rows = part.to_dicts()
    below = all(row["plateau_share"] < 1 for row in rows if row["sources"] > 1)
    short = len(rows) > 1 and rows[0]["plateau_s"] < SHORT * rows[1]["plateau_s"]
    ours = ", ".join(f"k={r['sources']}: {r['plateau_share']:.0%} for {r['plateau_s']:.2g} s" for r in rows)
    claim = "7B shows a plateau below the final level for k of 2 and more, hardly visible for k = 1"
    return _verdict(draft, claim, "below, and short for k = 1", ours, below and short)


def _firm(draft: Draft, table: pl.DataFrame) -> list[Verdict]:
    """Between which overheads of a dispatch our first tokens stay inside the published band.

    They come a step through the pipeline after it forms, or a step alone after it is left if that is sooner.
    """
    rows = draft.published.filter((pl.col("series") == "first tokens, FaaScale 7B") & pl.col("low").is_not_null())
    part = table.filter((pl.col("system") == LAMBDASCALE) & (pl.col("model") == "7B"))
    found, step_s = [], decode_s("7B")
    for row, ours in ((row, ours) for row in rows.to_dicts() for ours in part.to_dicts()):
        if row["x"] != f"k={ours['sources']}":
            continue
        formed_s = ours["last_s"] - ours["plateau_s"]
        low, high = ((row[edge] - step_s - formed_s) / BLOCKS for edge in ("low", "high"))
        high = math.inf if ours["last_s"] + step_s <= row["high"] else high
        held = low <= OVERHEADS_S[0] and high >= OVERHEADS_S[1]
        end = "whatever it costs" if math.isinf(high) else f"up to {high * 1e3:.2g} ms"
        begin = f"from {low * 1e3:.2g} ms, " if low > 0 else ""
        claim = f"7B's first tokens ({row['x']}) stand whatever a dispatch costs, from 1 to 5 ms"
        text = f"inside the band {begin}{end}"
        found.append(_verdict(draft, claim, f"{row['low']:g} to {row['high']:g} s", text, held))
    return found


def _by_model(table: pl.DataFrame, system: str):
    parts = table.filter(pl.col("system") == system).group_by("model", maintain_order=True)
    return [(name, part.sort("sources")) for (name,), part in parts]


def _verdict(draft: Draft, claim: str, published: str, ours: str, held: bool, why: str = "") -> Verdict:
    reading: Reading = "reproduced" if held else "differs"
    reason = "read off our table of first tokens and levels"
    if not draft.comparable:
        reading, reason = "not comparable", draft.reason
    elif not held:
        reason = why or "Assumed here: the decoding step, rates and overhead in the parameters"
    return Verdict(
        claim=claim, published=published, ours=ours, strength="ordering", verdict=reading, reason=reason,
        mode=draft.mode, seeds=draft.seeds,
    )  # fmt: skip
