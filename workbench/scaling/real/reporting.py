"""From what the parent heard to the record of a run."""

from collections.abc import Sequence

import polars as pl

from workbench.scaling.real.book import Book
from workbench.scaling.real.manager import PhaseEnd
from workbench.scaling.real.outcome import LiveRecovery, LiveRun, spoken
from workbench.scaling.real.planning import Operation, PhasePlan


def report(operation: Operation, phases: Sequence[PhasePlan], ends: Sequence[PhaseEnd], book: Book) -> LiveRun:
    """The record of a run of one phase, or of two after a loss."""
    start_s = ends[0].start_s
    held = {place: at_s - start_s for end in ends for place, at_s in end.took.items()}
    blocks = pl.DataFrame(
        [(node, block, at_s) for (node, block), at_s in held.items()],
        schema={"node": pl.Int64, "block": pl.Int64, "time_s": pl.Float64},
        orient="row",
    ).sort("node", "block")
    tokens = _tokens(book, start_s)
    count = len(operation.model.blocks)
    complete = {
        node: max(at_s for (holder, _), at_s in held.items() if holder == node)
        for node in phases[-1].targets
        if sum(holder == node for holder, _ in held) == count
    }
    wall_s = max([*complete.values(), float(tokens["time_s"].max())])
    overhead = _overhead(operation, phases, ends)
    busy_s = sum(one.busy_s for end in ends for one in end.reports.values())
    return LiveRun(
        mode=operation.mode,
        version=operation.model.version,
        requests=_requests(book, tokens),
        tokens=tokens,
        blocks=blocks,
        pipelines=_pipelines(phases[0], ends[0]),
        switches=_switches(book, tokens, start_s),
        complete_s=tuple(complete.get(node, float("nan")) for node in operation.targets),
        outputs=tuple(spoken([(one.token, one.logits) for one in told]) for told in book.told),
        scale=operation.scale,
        step_s=min(map(operation.transfer_s, range(count))),
        overhead=overhead,
        waiting_share=max(0.0, 1.0 - busy_s / operation.nodes / wall_s),
        wall_s=wall_s,
        recovery=_recovery(phases, ends) if len(ends) > 1 else None,
    )


def _tokens(book: Book, start_s: float) -> pl.DataFrame:
    rows = [
        (request, place, one.at_s - start_s, one.token, book.names[one.route])
        for request, told in enumerate(book.told)
        for place, one in enumerate(told)
    ]
    names = {"request_id": pl.Int64, "place": pl.Int64, "time_s": pl.Float64, "token": pl.Int64, "by": pl.String}
    return pl.DataFrame(rows, schema=names, orient="row")


def _requests(book: Book, tokens: pl.DataFrame) -> pl.DataFrame:
    spoke = tokens.sort("request_id", "place").group_by("request_id", maintain_order=True)
    return spoke.agg(
        pl.col("time_s").first().alias("first_token_s"),
        pl.col("time_s").last().alias("finish_s"),
        pl.col("by").first().alias("first_by"),
        pl.col("by").last().alias("last_by"),
    ).with_columns(
        pl.Series("prompt_tokens", [len(prompt.tokens) for prompt in book.prompts]),
        pl.Series("output_tokens", [prompt.output for prompt in book.prompts]),
        pl.Series("moves", book.moves),
    )


def _pipelines(phase: PhasePlan, end: PhaseEnd) -> pl.DataFrame:
    rows = [
        (number, [segment.node for segment in route], formed_s - end.start_s, dissolved_s - end.start_s)
        for number, (route, formed_s, dissolved_s) in enumerate(
            zip(phase.pipelines, end.formed_s, end.dissolved_s, strict=True)
        )
    ]
    names = {"pipeline": pl.Int64, "nodes": pl.List(pl.Int64), "formed_s": pl.Float64, "dissolved_s": pl.Float64}
    return pl.DataFrame(rows, schema=names, orient="row")


def _switches(book: Book, tokens: pl.DataFrame, start_s: float) -> pl.DataFrame:
    rows = []
    for request, said, left_s in book.switches:
        after = tokens.row(by_predicate=(pl.col("request_id") == request) & (pl.col("place") == said), named=True)
        before = len(book.prompts[request].tokens) + said
        rows.append((request, before, left_s - start_s, after["time_s"], after["by"]))
    names = {"request_id": pl.Int64, "tokens_before": pl.Int64, "left_s": pl.Float64, "first_after_s": pl.Float64}
    return pl.DataFrame(rows, schema={**names, "by": pl.String}, orient="row")


def _overhead(operation: Operation, phases: Sequence[PhasePlan], ends: Sequence[PhaseEnd]) -> float:
    """Mean lateness of blocks over the shortest step, or of passes over the mean pass, whichever is more."""
    reports = [report for end in ends for report in end.reports.values()]
    late_s = [arrival.end_s - arrival.deadline_s for report in reports for arrival in report.arrivals]
    links = sum(late_s) / len(late_s) / min(map(operation.transfer_s, phases[0].schedule.block.tolist()))
    passes_s, holds_s = (sum(sum(getattr(report, name)) for report in reports) for name in ("late_s", "holds_s"))
    return max(links, passes_s / holds_s if holds_s else 0.0)


def _recovery(phases: Sequence[PhasePlan], ends: Sequence[PhaseEnd]) -> LiveRecovery:
    start_s, loss = ends[0].start_s, ends[0].losses[0]
    return LiveRecovery(
        node=loss.node,
        kind=loss.kind,
        noticed_s=loss.noticed_s - start_s,
        detected_s=None if loss.fault_s is None else loss.noticed_s - loss.fault_s,
        resumed_s=ends[1].start_s - start_s,
        requests=len(ends[0].begun),
        blocks_moved=len(phases[1].schedule.block),
    )
