"""What became of a pool's requests, as tables; promises kept by all four definitions."""

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np
import polars as pl

from workbench.pooling.model.engine import run_compiled
from workbench.pooling.model.lowered import (
    DONE,
    HOST_COLUMNS,
    REJECTED,
    ROUND_COLUMNS,
    STATUS,
    SWITCH_COLUMNS,
    TURN_COLUMNS,
    Lowered,
    Outcome,
)
from workbench.pooling.model.pooling import Pooling, lower
from workbench.pooling.model.served import PoolModel
from workbench.profiles.slo_record import SLO, Definition
from workbench.records import Record
from workbench.serving.model.promises import attainment, kept_shares
from workbench.workloads.handle import Trace


class PoolRun(Record):
    """One run of a pool.

    Attributes:
        asked: the request table as it came.
        lowered, outcome: the run and what happened, as arrays; times count from the first arrival.
        models: names of the models by number.
    """

    asked: pl.DataFrame
    lowered: Lowered
    outcome: Outcome
    models: tuple[str, ...]

    @cached_property
    def requests(self) -> pl.DataFrame:
        """The request table with `status, first_token_s, finish_s, wait_s, tbt_mean_s, tbt_max_s, prefill_instance,
        decode_instance, prefill_s, decode_s, moved_s, waited_s`; instants from the first arrival, NaN for none."""
        out = self.outcome
        gaps = np.diff(out.token_s)
        begin = out.token_at[:-1]
        inside = np.ones(gaps.size, bool)
        inside[begin[(begin > 0) & (begin <= gaps.size)] - 1] = False
        owner = np.repeat(np.arange(out.made.size), np.maximum(out.made, 0))[:-1][inside]
        largest = np.full(out.made.size, np.nan)
        largest[np.unique(owner)] = 0.0
        np.maximum.at(largest, owner, gaps[inside])
        with np.errstate(invalid="ignore"):
            mean = (out.finish_s - out.first_token_s) / np.where(out.made > 1, out.made - 1, np.nan)
        return self.asked.with_columns(
            status=pl.Series(out.status).replace_strict(STATUS, return_dtype=pl.String),
            first_token_s=out.first_token_s,
            finish_s=out.finish_s,
            wait_s=out.wait_s,
            tbt_mean_s=mean,
            tbt_max_s=largest,
            prefill_instance=out.prefill_instance,
            decode_instance=out.decode_instance,
            prefill_s=out.prefill_s,
            decode_s=out.decode_s,
            moved_s=out.moved_s,
            waited_s=out.waited_s,
        )

    @cached_property
    def switches(self) -> pl.DataFrame:
        """Every switch: `start_s, end_s, instance, model, kind, bytes`; kind is cold, partly prefetched, or hidden."""
        table = self._table(self.outcome.switches, SWITCH_COLUMNS)
        names = {0: "cold", 1: "partly prefetched", 2: "hidden"}
        return table.with_columns(pl.col("kind").cast(pl.Int64).replace_strict(names, return_dtype=pl.String))

    @cached_property
    def turns(self) -> pl.DataFrame:
        """Every turn: `start_s, ready_s` (its model is there), `end_s, instance, model, quota_s, requests, tokens`."""
        return self._table(self.outcome.turns, TURN_COLUMNS)

    @cached_property
    def rounds(self) -> pl.DataFrame:
        """Every round: `time_s, instance, batches, pace, switches_s, quotas_s`."""
        return self._table(self.outcome.rounds, ROUND_COLUMNS)

    @cached_property
    def host(self) -> pl.DataFrame:
        """KV caches in host memory: `time_s, node, request, model, blocks`, negative when they are free again."""
        return self._table(self.outcome.host, HOST_COLUMNS)

    def attainment(self, slo: SLO) -> dict[str, float]:
        """How well a promise was kept, by all four definitions (notes on Aegaeon, §2.2); who was turned away or
        failed counts as not served."""
        out = self.outcome
        return attainment(self.lowered, out, out.token_s, out.token_at, slo)

    def kept(self, slo: SLO, definition: Definition | None = None) -> np.ndarray:
        """How far a promise was kept for each request: float64[n]."""
        out = self.outcome
        return kept_shares(self.lowered, out, out.token_s, out.token_at, slo, definition or slo.definition)[0]

    def whole(self, slo: SLO) -> np.ndarray:
        """Which requests had every token by its deadline, bool[n]."""
        return (self.outcome.status == DONE) & (self.kept(slo, "token") >= 1.0)

    def metrics(self) -> dict[str, float]:
        """Counts of requests, switches and turns; shares of GPU time in steps and switches; host memory at its peak."""
        out, span_s = self.outcome, self.span_s
        bytes_there = out.host[:, 4] * self.lowered.models.block_bytes[out.host[:, 3].astype(int)]
        peaks = [np.cumsum(bytes_there[out.host[:, 1] == node]).max(initial=0.0) for node in range(self.nodes)]
        return {
            "requests": float(out.status.size),
            "done": float((out.status == DONE).sum()),
            "rejected": float((out.status == REJECTED).sum()),
            "span_s": span_s,
            "rate_per_s": out.status.size / span_s if span_s else float("nan"),
            "switches": float(len(out.switches)),
            "turns": float(len(out.turns)),
            "busy_share": float(out.busy_s.sum()) / (span_s * out.busy_s.size) if span_s else float("nan"),
            "switching_share": float(out.switching_s.sum()) / (span_s * out.busy_s.size) if span_s else float("nan"),
            "host_kv_peak_bytes": float(max(peaks)),
        }

    @property
    def span_s(self) -> float:
        """From the first arrival to the last finish."""
        return float(np.nanmax(self.outcome.finish_s, initial=0.0))

    @property
    def nodes(self) -> int:
        """Hosts of the pool."""
        return 1 + int(self.lowered.pool.node[-1])

    def _table(self, rows: np.ndarray, columns: tuple[str, ...]) -> pl.DataFrame:
        table = pl.DataFrame(rows, schema=list(columns))
        whole = [name for name in columns if name in ("instance", "node", "request", "requests", "tokens", "batches")]
        table = table.with_columns(pl.col(whole).cast(pl.Int64))
        if "model" not in columns:
            return table
        names = pl.Series(list(self.models), dtype=pl.String)
        return table.with_columns(model=names.gather(table["model"].cast(pl.Int64)))


def pooled(
    pooling: Pooling,
    models: Mapping[str, PoolModel],
    requests: Trace | pl.DataFrame,
    *,
    backend: Callable[[Lowered], Outcome] | None = None,
    **options,
) -> PoolRun:
    """Serve requests by a pool.

    Parameters:
        pooling, models, requests, options: as for `lower`.
        backend: another engine that takes `Lowered` and gives `Outcome`; the compiled one when None.

    Raises:
        InputError: as `lower`, and for requests that the engine cannot take, with array and row.
    """
    lowered = lower(pooling, models, requests, **options)
    table = requests.requests if isinstance(requests, Trace) else requests
    return PoolRun(asked=table, lowered=lowered, outcome=(backend or run_compiled)(lowered), models=tuple(models))
