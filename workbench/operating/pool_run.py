"""The handle of one run of a pool: the tables that every run has, and those of turns and switches."""

import html
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from workbench.operating.choices import counted, promised
from workbench.operating.pool_systems import PoolSystem
from workbench.operating.pool_tables import allocation, found_metrics, iterations_and_segments, timeline, transfers
from workbench.operating.requests import replayable
from workbench.paths import write_atomic
from workbench.pooling import Pooling
from workbench.pooling.model import PoolRun
from workbench.profiles import SLO, Cluster, Deployment, Model
from workbench.records import Record, given_path
from workbench.serving.model.promises import kept_shares
from workbench.serving.model.run import chosen_requests
from workbench.workloads import Trace

SHOWN = ("done", "rejected", "failed", "inside", "requests_per_s", "ttft_mean_s", "ttft_p99_s", "tpot_mean_s",
         "tpot_p99_s", "e2e_mean_s", "switches", "switching_share", "gpu_allocated_s", "gpu_active_s")  # fmt: skip


class PooledRun(Record):
    """One run of a pool of GPUs that many models share.

    Attributes:
        system, cluster, models, deployment, slo: what was asked; models by the name that requests give.
        pooling: the same as the pooling engine takes it.
        backend: of the run. Nothing in a pool is drawn, so that it has no seed.
        notes: what a reader should know, one sentence each.
        served: the engine's own record of it, whose times count from the first arrival.
    """

    system: PoolSystem
    cluster: Cluster
    models: Mapping[str, Model]
    deployment: Deployment
    slo: SLO | None
    pooling: Pooling
    backend: str
    notes: tuple[str, ...] = ()
    served: PoolRun

    @cached_property
    def start_s(self) -> float:
        """The first arrival on the request table's own clock, which is that of all tables here."""
        return float(self.served.asked["arrival_s"][0]) if len(self.served.asked) else 0.0

    @cached_property
    def requests(self) -> pl.DataFrame:
        """What became of each request: the trace's columns with `status` (done, rejected, or failed where it was given
        up before its first token), `first_token_s, finish_s, wait_s, tbt_mean_s, tbt_max_s, prefill_instance,
        decode_instance, weight_version`, and seconds in its prompt, in its decode steps, of its KV cache on the way,
        and of turns in which that was not there yet: `prefill_s, decode_s, moved_s, waited_s`."""
        instants = [pl.col(name) + self.start_s for name in ("first_token_s", "finish_s")]
        return self.served.requests.with_columns(*instants, weight_version=pl.lit(0))

    @cached_property
    def _stepped(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        return iterations_and_segments(self.served, self.start_s)

    @property
    def iterations(self) -> pl.DataFrame:
        """Every step that gave a token: `instance, iteration, end_s`."""
        return self._stepped[0]

    @property
    def segments(self) -> pl.DataFrame:
        """Runs of one token in each of consecutive steps: `request_id, first_index, count, instance,
        first_iteration`."""
        return self._stepped[1]

    @cached_property
    def timeline(self) -> pl.DataFrame:
        """What happened when, `time_s, entity, kind, value`: arrivals, first tokens, finishes, and switches of models;
        the value is the instance."""
        return timeline(self.served, self.start_s)

    @cached_property
    def allocation(self) -> pl.DataFrame:
        """GPUs of the pool, which belong to no model: `time_s, model, gpus_allocated, gpus_active` with "pool" for the
        model; a GPU is active while it has a request that began and has not ended there."""
        return allocation(self.served, self.start_s, self.deployment.tp)

    @cached_property
    def transfers(self) -> pl.DataFrame:
        """Every switch of weights: `start_s, end_s, source, target, block, bytes, kind, model, version, path`; the time
        is what the GPU waited for them, and the path says whether they were fetched ahead."""
        return transfers(self.served, self.start_s)

    @property
    def switches(self) -> pl.DataFrame:
        """As `workbench.pooling.PoolRun.switches`; these four count from the first arrival."""
        return self.served.switches

    @property
    def turns(self) -> pl.DataFrame:
        """As `workbench.pooling.PoolRun.turns`."""
        return self.served.turns

    @property
    def rounds(self) -> pl.DataFrame:
        """As `workbench.pooling.PoolRun.rounds`."""
        return self.served.rounds

    @property
    def host(self) -> pl.DataFrame:
        """As `workbench.pooling.PoolRun.host`."""
        return self.served.host

    def token_times(self, request_ids: Sequence | None = None) -> pl.DataFrame:
        """When each token came: `request_id, token, time_s`, of some requests or of all.

        Raises:
            InputError: an id that the run does not have.
        """
        out, ids = self.served.outcome, self.served.asked["request_id"]
        request = np.repeat(np.arange(out.made.size), out.made)
        table = pl.DataFrame(
            {
                "request_id": ids.gather(request),
                "token": np.arange(request.size) - out.token_at[request],
                "time_s": out.token_s + self.start_s,
            }
        )
        if request_ids is None:
            return table
        return table.filter(pl.Series(chosen_requests(ids, request_ids)[request]))

    def metrics(self, slo: SLO | None = None) -> dict[str, float]:
        """Counts, latencies, rates and GPU time as of any run, and of a pool: switches, their share of the GPUs' time,
        turns and the most bytes of KV cache in a host; with a promise also goodput and attainment by all four
        definitions.

        Parameters:
            slo: the promise; that of the run when None. Another one needs no other run.
        """
        return found_metrics(self.served, self.slo if slo is None else promised(slo), self.deployment.tp)

    def kept(self, slo: SLO) -> tuple[np.ndarray, np.ndarray]:
        """How far a promise was kept for each request by its own definition, and how much the request counts:
        float64[n] each; attainment is the mean of the first weighted by the second."""
        out = self.served.outcome
        return kept_shares(self.served.lowered, out, out.token_s, out.token_at, slo, slo.definition)

    @property
    def trace(self) -> Trace:
        """The requests as a trace, to be replayed or written with `workbench.workloads.convert`."""
        return replayable(self.served.asked, self.system.name)

    def chrome_trace(self, path: str | Path) -> Path:
        """Write the run for chrome://tracing or Perfetto: switches and turns of each instance, microseconds from the
        first arrival."""
        events = [
            {"ph": "M", "name": "process_name", "pid": k, "args": {"name": f"instance {k}"}}
            for k in range(self.served.lowered.pool.node.size)
        ]
        for name, table in (("switch to", self.switches), ("turn of", self.turns)):
            events += [
                {"ph": "X", "name": f"{name} {row['model']}", "pid": row["instance"], "tid": 0,
                 "ts": round(row["start_s"] * 1e6, 3), "dur": round((row["end_s"] - row["start_s"]) * 1e6, 3)}
                for row in table.iter_rows(named=True)
            ]  # fmt: skip
        return write_atomic(
            given_path(path, "path"), json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, allow_nan=False)
        )

    def save(self, path: str | Path) -> Path:
        """Write the run to a folder of Parquet and JSON, whole or not at all; `wb.load` reads it."""
        from workbench.operating.pool_saving import save_pooled

        return save_pooled(self, path)

    @property
    def sentence(self) -> str:
        """What the run says, in one sentence computed from its tables."""
        found, where = self.metrics(), f"{self.system.name} on {self.cluster.name}"
        if not self.served.asked.height:
            return f"{where}: no requests came."
        text = (
            f"{where} served {found['done']:,.0f} of {len(self.served.asked):,} requests to "
            f"{counted(len(self.models), 'model')} by {counted(self.served.lowered.pool.node.size, 'instance')} of TP "
            f"{self.deployment.tp} with {found['switches']:,.0f} switches"
        )
        if lost := found["rejected"] + found["failed"]:
            text += f"; {lost:,.0f} were turned away"
        if np.isfinite(found["ttft_mean_s"]):
            text += f"; the first token took {found['ttft_mean_s']:.3g} s on average (P99 {found['ttft_p99_s']:.3g} s)"
        if np.isfinite(found["tpot_mean_s"]):
            text += f", a further one {found['tpot_mean_s']:.3g} s"
        if self.slo is not None and np.isfinite(found["attainment"]):
            text += (
                f"; TTFT {float(self.slo.ttft_s):g} s and TBT {float(self.slo.tbt_s):g} s were kept for "
                f"{found['attainment']:.1%} by the definition {self.slo.definition!r}"
            )
        return text + "."

    def __repr__(self) -> str:
        return f"<PooledRun of {self.sentence.rstrip('.')}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        found = self.metrics()
        shown = [*SHOWN, *(name for name in found if name.startswith(("goodput", "attainment_")))]
        rows = "".join(
            f"<tr><td style='padding:2px 8px;text-align:left'>{html.escape(name)}</td>"
            f"<td style='padding:2px 8px;text-align:right'>{found[name]:.5g}</td></tr>"
            for name in shown
        )
        notes = "".join(f"<p style='margin:4px 0'>{html.escape(note)}</p>" for note in self.notes)
        return (
            f"<p style='margin:4px 0'>{html.escape(self.sentence)}</p>{notes}"
            f"<details><summary>Metrics</summary><table style='font-size:13px'>{rows}</table></details>"
            f"<p style='margin:4px 0;font-size:12px;opacity:.75'>{html.escape(self.backend)}; run as in the "
            f"{html.escape(self.system.variant)}</p>"
        )
