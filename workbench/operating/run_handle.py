"""The handle of one run: the tables of what happened, metrics for any promise, files."""

import html
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from workbench.operating.choices import counted, promised
from workbench.operating.growing import prompt_rate
from workbench.operating.harm import gaps_around_scale_outs
from workbench.operating.moving import bandwidth_share, weight_links, weight_transfers
from workbench.operating.needing import needed_s
from workbench.operating.requests import replayable
from workbench.operating.system_record import System
from workbench.operating.tracing_events import chrome_events
from workbench.paths import write_atomic
from workbench.profiles import SLO, Cluster, Deployment, Model
from workbench.records import Record, given_path
from workbench.serving import Run as Served
from workbench.serving import Scenario, metrics
from workbench.workloads import Trace

SHOWN = ("done", "rejected", "inside", "requests_per_s", "ttft_mean_s", "ttft_p99_s", "tpot_mean_s", "tpot_p99_s",
         "e2e_mean_s", "evictions", "gpu_allocated_s", "gpu_active_s", "peak_gpus")  # fmt: skip
OF_SCALING = ("scaleouts", "weight_bytes", "weight_bandwidth_share", "tbt_scaling_p99_s", "tbt_steady_p99_s")


class Run(Record):
    """One run of a system.

    Attributes:
        system, cluster, models, deployment, slo: what was asked; models by the name that requests give.
        scenario: the same as the engine takes it.
        seed, backend: of the run.
        notes: what a reader should know, one sentence each.
        served: the engine's own record of it.
    """

    system: System
    cluster: Cluster
    models: Mapping[str, Model]
    deployment: Deployment
    slo: SLO | None
    scenario: Scenario
    seed: int
    backend: str
    notes: tuple[str, ...] = ()
    served: Served

    @cached_property
    def requests(self) -> pl.DataFrame:
        """What became of each request: the trace's columns with `status, first_token_s, finish_s, wait_s, tbt_mean_s,
        tbt_max_s, prefill_instance, decode_instance, weight_version`, how often it was evicted, moved or started anew,
        and `cached_tokens`, prompt tokens that a prefix cache saved it, counted at every admission."""
        return self.served.requests

    @property
    def iterations(self) -> pl.DataFrame:
        """Every completed step: `instance, iteration, end_s`."""
        return self.served.iterations

    @property
    def segments(self) -> pl.DataFrame:
        """Runs of one token in each of consecutive steps: `request_id, first_index, count, instance,
        first_iteration`."""
        return self.served.segments

    @property
    def timeline(self) -> pl.DataFrame:
        """What happened when: `time_s, entity, kind, value`."""
        return self.served.timeline

    @property
    def allocation(self) -> pl.DataFrame:
        """GPUs of each model from each change on: `time_s, model, gpus_allocated, gpus_active`; a GPU is active while
        its instance runs a request."""
        return self.served.allocation

    @cached_property
    def scaleouts(self) -> pl.DataFrame:
        """Every load of weights: `model, version, needed_s, detected_s, first_useful_s, alone_s, cancelled,
        requests_helped, bytes` and by which path; none where the number of instances stays. `needed_s` is by the run's
        promise, NaN without one; first useful may be a step of another instance that it helped with."""
        return self.scaleouts_by(self.slo)

    def scaleouts_by(self, slo: SLO | None) -> pl.DataFrame:
        """The same by another promise; see `workbench.operating.needing.needed_s` for what needed means."""
        table = self.served.scaleouts
        if slo is None or not table.height:
            return table
        prompts = {group.model: group for group in self.scenario.groups if group.role != "decode"}
        rates = np.array([prompt_rate(prompts[name].step, prompts[name].engine) for name in self.scenario.models])
        needed = needed_s(self.served.lowered, self.served.outcome, rates, float(slo.ttft_s))
        return table.with_columns(needed_s=needed + self.served.start_s)

    @property
    def assists(self) -> pl.DataFrame:
        """Steps that instances helped with while their own weights came: `start_s, end_s, helper, instance, iteration,
        layers`."""
        return self.served.assists

    @cached_property
    def transfers(self) -> pl.DataFrame:
        """Every load of weights (block -1 is all of them) and every KV cache that was sent, by start: `start_s, end_s,
        source, target, block, bytes, kind, model, version, path`."""
        parts = [weight_transfers(self.served, self.scenario), self.served.transfers]
        return pl.concat(parts).sort("start_s", maintain_order=True)

    @cached_property
    def links(self) -> pl.DataFrame:
        """How fast each link ran for them: `start_s, end_s, link, kind, bytes_per_s`."""
        parts = [weight_links(self.served, self.scenario), self.served.links]
        return pl.concat(parts).sort("start_s", maintain_order=True)

    def token_times(self, request_ids: Sequence | None = None) -> pl.DataFrame:
        """When each token came: `request_id, token, time_s`, of some requests or of all."""
        return self.served.token_times(request_ids)

    def metrics(self, slo: SLO | None = None) -> dict[str, float]:
        """Counts, latencies, rates, GPU time and the most GPUs at a time; with a promise also goodput and attainment by
        all four definitions.

        Where instances come and go also how many loads of weights there were, their bytes, the share of the nominal
        bandwidth that they got, and the time between tokens of requests that ran already when an instance of their
        model was started, while it was (`tbt_scaling_...`), beside all others (`tbt_steady_...`).

        Parameters:
            slo: the promise; that of the run when None. Another one needs no other run.
        """
        slo = self.slo if slo is None else promised(slo)
        found = metrics(self.served, slo)
        found["inside"] = found["arrived"] - found["done"] - found["rejected"]
        found["peak_gpus"] = self.peak_gpus
        if self.scenario.pool is not None:
            found |= self._of_scaling
        if slo is not None:
            shares = self.served.attainment(slo)
            found |= {f"attainment_{name}": share for name, share in shares.items()}
            found["attainment"] = shares[slo.definition]
        return found

    @property
    def gpu_allocated_s(self) -> float:
        """Seconds of all GPUs that were held, from the first arrival to the last finish or where the clock stopped."""
        return metrics(self.served)["gpu_allocated_s"]

    @property
    def peak_gpus(self) -> float:
        """The most GPUs that all models held at one time."""
        held = pl.col("gpus_allocated")
        change = held.diff().over("model").fill_null(held)
        by_time = self.allocation.select("time_s", change=change).group_by("time_s").sum().sort("time_s")
        return float(by_time["change"].cum_sum().max() or 0)

    @cached_property
    def _of_scaling(self) -> dict[str, float]:
        gaps = gaps_around_scale_outs(self.served)
        found = {
            "scaleouts": float(self.scaleouts.height),
            "weight_bytes": float(self.scaleouts["bytes"].sum()),
            "weight_bandwidth_share": bandwidth_share(self.served, self.scenario, self.cluster),
        }
        for name, gaps_s in (("scaling", gaps.during_s), ("steady", gaps.outside_s)):
            found[f"tbt_{name}_mean_s"] = float(gaps_s.mean()) if gaps_s.size else float("nan")
            found[f"tbt_{name}_p99_s"] = float(np.quantile(gaps_s, 0.99)) if gaps_s.size else float("nan")
        return found

    def kept(self, slo: SLO) -> tuple[np.ndarray, np.ndarray]:
        """How far a promise was kept for each request by its own definition, and how much the request counts:
        float64[n] each; attainment is the mean of the first weighted by the second."""
        return self.served.kept(slo)

    @property
    def trace(self) -> Trace:
        """The requests as a trace, to be replayed or written with `workbench.workloads.convert`."""
        return replayable(self.served.asked, self.system.name)

    def chrome_trace(self, path: str | Path) -> Path:
        """Write the run for chrome://tracing or Perfetto: each request's waiting, prompt and decoding by instance."""
        return write_atomic(given_path(path, "path"), chrome_events(self.served, self.scenario.instance_models))

    def save(self, path: str | Path) -> Path:
        """Write the run to a folder of Parquet and JSON, whole or not at all; `wb.load` reads it."""
        from workbench.operating.saving import save

        return save(self, path)

    @property
    def sentence(self) -> str:
        """What the run says, in one sentence computed from its tables."""
        found = self.metrics()
        where = f"{self.system.name} on {self.cluster.name}"
        if not self.served.asked.height:
            return f"{where}: no requests came."
        count, whom, stop_s = len(self.served.asked), f"{len(self.served.asked):,} requests", self.scenario.until_s
        if found["done"] + found["rejected"] < count and stop_s < math.inf:
            part = f"the {found['arrived']:,.0f} of {whom} that had come" if found["arrived"] < count else whom
            whom = f"{part} when the clock stopped after {stop_s:g} s"
        text = f"{where} served {found['done']:,.0f} of {whom}{self._instances}"
        if found["rejected"]:
            text += f" and rejected {found['rejected']:,.0f} that fit none"
        if stop_s == math.inf and found["inside"]:
            text += f"; {found['inside']:,.0f} were left for which no instance had room or was up any more"
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

    @property
    def _instances(self) -> str:
        """By how many, in words; nothing where no time passed in which one could be there."""
        tp = self.deployment.tp
        if self.scenario.pool is None:
            return f" by {counted(len(self.scenario.instance_models), 'instance')} of TP {tp}"
        most = round(self.peak_gpus / tp)
        if most:
            return f" by up to {counted(most, 'instance')} of TP {tp}"
        return f" without any instance of TP {tp}" if self.scenario.until_s > 0 else ""

    def __repr__(self) -> str:
        return f"<Run of {self.sentence.rstrip('.')}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        found = self.metrics()
        shown = [*SHOWN, *(name for name in OF_SCALING if name in found)]
        shown += [name for name in found if name.startswith(("goodput", "attainment_"))]
        rows = "".join(
            f"<tr><td style='padding:2px 8px;text-align:left'>{html.escape(name)}</td>"
            f"<td style='padding:2px 8px;text-align:right'>{found[name]:.5g}</td></tr>"
            for name in shown
        )
        notes = "".join(f"<p style='margin:4px 0'>{html.escape(note)}</p>" for note in self.notes)
        about = f"{self.backend}, seed {self.seed}; step times: {self.scenario.groups[0].step.source}"
        return (
            f"<p style='margin:4px 0'>{html.escape(self.sentence)}</p>{notes}"
            f"<details><summary>Metrics</summary><table style='font-size:13px'>{rows}</table></details>"
            f"<p style='margin:4px 0;font-size:12px;opacity:.75'>{html.escape(about)}</p>"
        )
