"""What became of a run, as tables: requests, iterations, segments, timeline; token times and promises on request."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import numpy as np
import polars as pl

from workbench.errors import InputError
from workbench.profiles.slo_record import SLO
from workbench.records import Record, shown
from workbench.serving.kernels.gaps import fill_gaps, fill_token_times
from workbench.serving.model.allocating import allocation
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.kv_tables import kv_links, kv_transfers
from workbench.serving.model.lowered import DONE, INSIDE, REJECTED, Lowered, Outcome
from workbench.serving.model.promises import attainment, kept_shares
from workbench.serving.model.scaling_tables import assists, scaleouts, state_rows
from workbench.serving.model.scenario import Scenario, lower
from workbench.serving.model.telling_apart import require_apart
from workbench.workloads.generators.streams import Seed
from workbench.workloads.handle import Trace


def chosen_requests(ids: pl.Series, wanted: Iterable) -> np.ndarray:
    """Which of a run's requests are wanted, bool[n], by their ids.

    Raises:
        InputError: no list of ids, or one that the run does not have.
    """
    try:
        series = pl.Series([] if isinstance(wanted, str) else list(wanted), dtype=ids.dtype, strict=True)
        chosen = ids.is_in(series.implode()).to_numpy()
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise InputError(f"is {shown(wanted)}", "give a list of ids from requests", field="request_ids") from None
    if (missing := series.n_unique() - int(chosen.sum())) > 0:
        raise InputError(f"has {missing} ids that the run does not", "choose from requests", field="request_ids")
    return chosen


STATUS = {INSIDE: "inside", DONE: "done", REJECTED: "rejected"}


class Run(Record):
    """One run of a cluster.

    Attributes:
        asked: the request table as it came.
        lowered: the run as arrays; times count from the first arrival.
        outcome: what happened, as arrays.
        models: names of the models that instances serve, by number; numbers where none are given.
        accelerators: of an instance.
    """

    asked: pl.DataFrame
    lowered: Lowered
    outcome: Outcome
    models: tuple[str, ...] = ()
    accelerators: int = 1

    @cached_property
    def start_s(self) -> float:
        """The first arrival on the request table's own clock."""
        return float(self.asked["arrival_s"][0]) if len(self.asked) else 0.0

    @cached_property
    def requests(self) -> pl.DataFrame:
        """The request table with `status, first_token_s, finish_s, wait_s, tbt_mean_s, tbt_max_s, prefill_instance,
        decode_instance, weight_version, evictions, moves, restarts, tokens_made, cached_tokens`; instants on the
        table's own clock, NaN where there is none; -1 for no instance, and for the version of requests that were never
        admitted. Prompt tokens that a prefix cache saved are counted at every admission."""
        out = self.outcome
        mean_s, largest_s, _ = self._gaps(())
        return self.asked.with_columns(
            status=pl.Series(out.status).replace_strict(STATUS, return_dtype=pl.String),
            first_token_s=out.first_token_s + self.start_s,
            finish_s=out.finish_s + self.start_s,
            wait_s=out.wait_s,
            tbt_mean_s=mean_s,
            tbt_max_s=largest_s,
            prefill_instance=out.prefill,
            decode_instance=out.instance,
            weight_version=out.weight_version if out.weight_version.size else np.zeros(len(self.asked), np.int64),
            evictions=out.evictions,
            moves=out.moves,
            restarts=out.restarts if out.restarts.size else np.zeros(len(self.asked), np.int64),
            tokens_made=out.made,
            cached_tokens=out.cached,
        )

    @cached_property
    def iterations(self) -> pl.DataFrame:
        """Every completed step: `instance, iteration, end_s`."""
        out = self.outcome
        counts = np.diff(out.iteration_at)
        instance = np.repeat(np.arange(counts.size), counts)
        return pl.DataFrame(
            {
                "instance": instance,
                "iteration": np.arange(instance.size) - out.iteration_at[instance],
                "end_s": out.iteration_end_s + self.start_s,
            }
        )

    @cached_property
    def segments(self) -> pl.DataFrame:
        """Runs of consecutive iterations with one token each: `request_id, first_index, count, instance,
        first_iteration`."""
        columns = ("first_index", "count", "instance", "first_iteration")
        rows = self.outcome.segments
        named = {name: rows[:, k + 1] for k, name in enumerate(columns)}
        return pl.DataFrame({"request_id": self._ids.gather(rows[:, 0]), **named})

    @cached_property
    def allocation(self) -> pl.DataFrame:
        """Accelerators that each model holds, and those at work, see `workbench.serving.model.allocating`."""
        return self._on_clock(allocation(self.lowered, self.outcome, self._names, self.accelerators))

    @cached_property
    def scaleouts(self) -> pl.DataFrame:
        """Every load of weights, see `workbench.serving.model.scaling_tables`."""
        return self._on_clock(scaleouts(self.lowered, self.outcome, self._names))

    @cached_property
    def assists(self) -> pl.DataFrame:
        """Steps that loading instances helped with, see `workbench.serving.model.scaling_tables`."""
        return self._on_clock(assists(self.outcome))

    @cached_property
    def transfers(self) -> pl.DataFrame:
        """Every transfer of KV, see `workbench.serving.model.kv_tables`."""
        return self._on_clock(kv_transfers(self.lowered, self.outcome, self._names))

    @cached_property
    def links(self) -> pl.DataFrame:
        """How fast links between instances ran, see `workbench.serving.model.kv_tables`."""
        return self._on_clock(kv_links(self.lowered, self.outcome))

    @cached_property
    def timeline(self) -> pl.DataFrame:
        """What happened when, `time_s, entity, kind, value`: arrivals, first tokens and finishes of requests, failures
        and recoveries of instances (with a pool, of places), changes of their states, new versions of models; the value
        is the instance or place, -1 for none."""
        out, failures = self.outcome, self.lowered.failures
        names = ("request " + self._ids.cast(pl.String)).to_list()
        parts = [
            (self.lowered.requests.arrival_s, names, "arrival", np.full(len(names), -1)),
            (out.first_token_s, names, "first token", out.instance),
            (out.finish_s, names, "finish", out.instance),
        ]
        down = [f"{'instance' if self.lowered.scaling is None else 'place'} {j}" for j in failures.instance]
        parts += [(failures.time_s, down, "failure", failures.instance)]
        parts += [(np.where(np.isinf(failures.back_s), np.nan, failures.back_s), down, "recovery", failures.instance)]
        updates = self.lowered.updates
        new = [f"model {self._names[m]}" for m in updates.model]
        parts += [(updates.time_s, new, "new version", np.full(len(new), -1))]
        parts += [state_rows(self.outcome)]
        frames = [
            pl.DataFrame(
                {
                    "time_s": time_s + self.start_s,
                    "entity": entity,
                    "kind": [kind] * len(entity) if isinstance(kind, str) else kind,
                    "value": value,
                },
                schema={"time_s": pl.Float64, "entity": pl.String, "kind": pl.String, "value": pl.Float64},
                strict=False,
            )
            for time_s, entity, kind, value in parts
        ]
        happened = pl.col("time_s").is_not_nan() & (pl.col("time_s") <= self.lowered.until_s + self.start_s)
        return pl.concat(frames).filter(happened).sort("time_s", maintain_order=True)

    def token_times(self, request_ids: Sequence | None = None) -> pl.DataFrame:
        """When each token came: `request_id, token, time_s`, of some requests or of all.

        Raises:
            InputError: an id that the run does not have.
        """
        rows, wanted = self.outcome.segments, np.arange(len(self.asked))
        if request_ids is not None:
            wanted = np.flatnonzero(chosen_requests(self._ids, request_ids))
            rows = rows[np.isin(rows[:, 0], wanted)]
        at, tokens_s = self._expanded(rows)
        count = self.outcome.made[wanted]
        request = np.repeat(wanted, count)
        return pl.DataFrame(
            {
                "request_id": self._ids.gather(request),
                "token": np.arange(tokens_s.size) - at[request],
                "time_s": tokens_s + self.start_s,
            }
        )

    def tbt_quantiles(self, shares: Sequence[float]) -> pl.DataFrame:
        """Mean, largest and quantiles of the gaps between each request's tokens: `request_id, tbt_mean_s, tbt_max_s`
        and `tbt_p95_s` for a share of 0.95; NaN for requests with fewer than two tokens.

        Raises:
            InputError: a share outside 0 to 1.
        """
        if not all(0 <= share <= 1 for share in shares):
            raise InputError("holds a share outside 0 to 1", "give 0.95 for the 95th percentile", field="shares")
        mean_s, largest_s, quantiles_s = self._gaps(shares)
        named = {f"tbt_p{100 * share:g}_s": quantiles_s[:, k] for k, share in enumerate(shares)}
        return pl.DataFrame({"request_id": self._ids, "tbt_mean_s": mean_s, "tbt_max_s": largest_s, **named})

    def attainment(self, slo: SLO) -> dict[str, float]:
        """How well a promise was kept, by all four definitions; see `workbench.serving.model.promises`."""
        everything = self.outcome.segments
        at, tokens_s = self._expanded(everything)
        return attainment(self.lowered, self.outcome, tokens_s, at, slo)

    def kept(self, slo: SLO) -> tuple[np.ndarray, np.ndarray]:
        """How far a promise was kept for each request by its own definition, and how much the request counts:
        float64[n] each; attainment is the mean of the first weighted by the second."""
        at, tokens_s = self._expanded(self.outcome.segments)
        return kept_shares(self.lowered, self.outcome, tokens_s, at, slo, slo.definition)

    def _expanded(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Times of the tokens of some segments, request after request, and where each request's begin."""
        out = self.outcome
        counts = np.bincount(rows[:, 0], weights=rows[:, 2], minlength=len(self.asked)).astype(np.int64)
        at = np.concatenate([[0], np.cumsum(counts)])
        tokens_s = np.empty(at[-1])
        rows = np.ascontiguousarray(rows)
        fill_token_times(rows, out.iteration_end_s, out.iteration_at, at[rows[:, 0]], tokens_s)
        return at, tokens_s

    def _gaps(self, shares: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return gaps(self.outcome, shares)

    def _on_clock(self, table: pl.DataFrame) -> pl.DataFrame:
        """With instants on the clock of the request table."""
        instants = [name for name in table.columns if name.endswith("_s") and not name.endswith("_per_s")]
        return table.with_columns(pl.col(instants) + self.start_s)

    @property
    def _names(self) -> Sequence[str]:
        return self.models or [str(m) for m in range(1 + int(self.lowered.instances.model.max()))]

    @property
    def _ids(self) -> pl.Series:
        return self.asked["request_id"]


def gaps(outcome: Outcome, shares: Sequence[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, largest and quantiles of each request's gaps between tokens: float64[n], float64[n], float64[n, q]."""
    n = outcome.status.size
    mean_s, largest_s, quantiles_s = np.full(n, np.nan), np.full(n, np.nan), np.full((n, len(shares)), np.nan)
    scratch = np.empty(int(outcome.made.max(initial=0)))
    fill_gaps(
        outcome.segments, outcome.iteration_end_s, outcome.iteration_at, np.array(shares, dtype=float), scratch, mean_s,
        largest_s, quantiles_s,
    )  # fmt: skip
    return mean_s, largest_s, quantiles_s


def serve(
    scenario: Scenario,
    requests: Trace | pl.DataFrame,
    *,
    seed: Seed = 0,
    chooser: Callable | None = None,
    backend: Callable[[Lowered], Outcome] | None = None,
) -> Run:
    """Serve requests by a cluster.

    Parameters:
        scenario: what serves.
        requests: a trace or its table.
        seed: of the random numbers that dispatch policies draw.
        chooser: a dispatch policy of one's own, made by `workbench.serving.policy.chooser`.
        backend: another engine that takes `Lowered` and gives `Outcome`; the compiled one when None.
    """
    lowered = lower(scenario, requests, seed)
    table = requests.requests if isinstance(requests, Trace) else requests
    if "request_id" not in table.columns:
        table = table.with_row_index("request_id").cast({"request_id": pl.Int64})
    outcome = backend(lowered) if backend else run_compiled(lowered, chooser)
    require_apart(lowered, outcome)
    accelerators = scenario.pool.accelerators if scenario.pool else 1
    return Run(asked=table, lowered=lowered, outcome=outcome, models=tuple(scenario.models), accelerators=accelerators)
