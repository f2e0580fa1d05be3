"""Figure 6: batches in an execution pipeline, stage by stage, as they run freely and in lock step."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.lambdascale.systems import BATCH, DECODE, Overhead, decode_s
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.operating.choices import counted
from workbench.results import Reading, Verdict
from workbench.scaling.model import Staged, idle_shares, staged_starts, staged_table
from workbench.scaling.simulated.staged import simulate_free_running, simulate_lock_step

FREE, LOCK_STEP = "free", "lock step"
NEIGHBOURS, STRIDED = "neighbouring", "strided"
IDLE = "largest share of the steady state that a node is idle"
SPAN = "seconds until the last block begins"
EVEN = 1e-9


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    rows = {row["pace"]: row for row in tables["summary"].to_dicts()[::-1]}
    row = rows[parameters["pace"]]
    inside = min(parameters["in_flight"] or parameters["nodes"], parameters["batches"])
    batches = "1 batch" if inside == 1 else f"{inside} batches"
    return (
        f"With {batches} in {counted(parameters['nodes'], 'node')} a node is idle for at most "
        f"{abs(row['idle_share']):.0%} of the steady state, and of its busy time {row['overhead_share']:.0%} is "
        f"dispatch; {row['tokens_per_s']:,.0f} tokens/s."
    )


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["summary"]
    idle = table.filter(pl.col("pace") == FREE)["idle_share"].to_list()
    reading: Reading = "reproduced" if max(map(abs, idle)) < EVEN else "differs"
    reason = "stages are even and as many batches are inside as there are nodes"
    if not draft.comparable:
        reading, reason = "not comparable", draft.reason
    elif reading == "differs":
        reason = "Assumed here: the batches and blocks that were asked for"
    return [
        Verdict(
            claim="no node is idle once the pipeline is full (Fig 6, a drawing without numbers)",
            published="0",
            ours=max(map(abs, idle)),
            strength="ordering",
            verdict=reading,
            reason=reason,
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "lambdascale/fig6",
    title="Batches in an execution pipeline",
    question="Which node works on which batch when, and does any node stand idle?",
    backends=("compiled", "simpy"),
    seconds={"compiled": 0.05, "simpy": 0.3},
    draw="staged.pipeline",
    panels=("chart", "idle"),
    say=_say,
    judges=(_judge,),
    agrees=(
        Agree(
            "begin of each block",
            "passes",
            ("pace", "batch", "token", "stage"),
            "begin_s",
            {("compiled", "simpy"): (0.0, 0.0)},
        ),
    ),
)
def fig6(
    context: Context,
    *,
    nodes: Annotated[int, Par("Nodes of the pipeline", low=1, high=8, source="4: chosen, the drawing has a few")] = 4,
    blocks: Annotated[
        int, Par("Execution blocks", low=8, high=64, step=8, status="published", source="artifact: 8 execution blocks")
    ] = 8,
    order: Annotated[
        str,
        Par(
            "Blocks of a node",
            choices=(NEIGHBOURS, STRIDED),
            free=True,
            source="neighbouring in the paper, strided in the artifact",
        ),
    ] = NEIGHBOURS,
    pace: Annotated[str, Par("Drawn", choices=(FREE, LOCK_STEP), free=True, source="lock step in the artifact")] = FREE,
    batches: Annotated[int, Par("Batches", low=1, high=24, source="4: chosen, as many as nodes")] = 4,
    in_flight: Annotated[
        int,
        Par(
            "Batches at a time, 0 for as many as nodes",
            low=0,
            high=24,
            status="published",
            source="MLSys'26 paper §4.3: as many as nodes",
        ),
    ] = 0,
    tokens: Annotated[int, Par("Tokens of each", low=1, high=64, free=True, source="chosen: 6 for the drawing")] = 6,
    overhead_s: Overhead = 0.002,
) -> dict[str, pl.DataFrame]:
    """Begin and end of every block of every batch and token on its node, at both paces, for Llama-2-7B.

    A block computes for an equal share of a decoding step; each dispatch adds its overhead to the node's time. A batch
    stays with its pipeline for all tokens, and the next enters when one is done.
    """
    token_s = context.cite(DECODE, decode_s("7B"), "s", "published", "λScale artifact, 7B")
    nodes = min(nodes, blocks)
    runs = [place * nodes // blocks if order == NEIGHBOURS else place % nodes for place in range(blocks)]
    passes, idle, summary, known = [], [], [], []
    for way in (FREE, LOCK_STEP):
        asked = Staged(
            runs=tuple(runs), block_s=token_s / blocks, overhead_s=overhead_s, batches=batches,
            in_flight=in_flight or nodes, tokens=tokens, pace=way,
        )  # fmt: skip
        table = staged_table(asked, _starts(context, asked))
        shares = idle_shares(asked, table)
        end_s, last_s = float(table["end_s"].max()), float(table["begin_s"].max())
        largest = float(shares["idle_share"].max())
        passes.append(table.select(pl.lit(way).alias("pace"), pl.all()))
        idle.append(shares.select(pl.lit(way).alias("pace"), pl.all()))
        summary.append(
            {
                "pace": way,
                "idle_share": largest,
                "overhead_share": overhead_s / (token_s / blocks + overhead_s),
                "tokens_per_s": batches * tokens * BATCH / end_s,
            }
        )
        known += [(IDLE, way, largest, "1"), (SPAN, way, last_s, "s")]
    tables = {"passes": pl.concat(passes), "idle": pl.concat(idle), "summary": pl.DataFrame(summary)}
    return {**tables, "headline": headline(known)}


def _starts(context: Context, asked: Staged) -> np.ndarray:
    if context.backend == "compiled":
        return staged_starts(asked)
    simulate = simulate_lock_step if asked.pace == LOCK_STEP else simulate_free_running
    return simulate(asked.stages[0], asked.seconds, asked.batches, asked.tokens, asked.in_flight)
