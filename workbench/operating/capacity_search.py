"""The largest load at which a system keeps its promise."""

import html
import math
from collections.abc import Callable
from typing import Any

import polars as pl

from workbench.errors import InputError, UserError
from workbench.operating.choices import counted, find_system, promised
from workbench.operating.requests import Requests, request_table, told_hash_blocks
from workbench.operating.run_handle import Run
from workbench.operating.simulating import handed_on, resolved, run_of
from workbench.operating.system_record import System
from workbench.profiles import SLO
from workbench.queueing.statistics import batch_means, replication_seeds, student_interval
from workbench.records import Record, check_watching, positive, share
from workbench.workloads.generators.streams import root_of

BATCHES = 20
WIDEST = 2.0**24
"""How much slower or faster than it came a trace is played at most."""
MOST_TICKS = 1_000_000
"""A trace is played no slower than so many decisions of an autoscaler; requests are far apart then."""
MOST_FASTER = 10
"""How often a trace is played twice as fast in search of any load that keeps the promise."""


class Capacity(Record):
    """The largest load that keeps a promise.

    Attributes:
        rate_per_s: requests a second, mean over the trace.
        low, high: 95 % interval.
        method: what the interval rests on.
        attainment: share that had to be kept.
        tried: every load that was run: `run, rate_per_s, attainment, gpu_allocated_s, peak_gpus`.
        sentence: the answer in words.
    """

    rate_per_s: float
    low: float
    high: float
    method: str
    attainment: float
    tried: pl.DataFrame
    sentence: str

    def __repr__(self) -> str:
        return f"<Capacity: {self.sentence}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return f"<p style='margin:4px 0'>{html.escape(self.sentence)}</p>{self.tried._repr_html_()}"


def capacity(
    system: str | System,
    *,
    trace: Requests | Callable[[int], Requests],
    slo: SLO | str,
    attainment: float = 0.9,
    replications: int = 10,
    warm_up: float = 0.0,
    precision: float = 0.005,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
    **of_the_run: Any,
) -> Capacity:
    """How much load does a system bear while it keeps its promise?

    The trace is played faster or slower until attainment just reaches the share asked for; its requests stay the same,
    so all loads are compared on common random numbers. Where instances come and go attainment need not fall with the
    load (few requests may each wait for a start); the answer is then one load at which it crosses the share.

    The interval of one trace comes from batches of consecutive requests: between the loads at which the lower and the
    upper end of attainment's 95 % interval cross the share. With a function seed -> trace each replication has its own
    largest load, and Student's interval is over those.

    Parameters:
        system: as in `wb.simulate`.
        trace: a trace, or a function that draws one from a seed.
        slo: the promise.
        attainment: share of requests (or tokens, or time, by the promise's definition) that must keep it.
        replications: how many traces are drawn, where a function is given.
        warm_up: share of the first requests that is served but not counted.
        precision: the search ends when the load is known to this share of itself.
        seed: of all that is drawn.
        progress: told in words how far the work is.
        of_the_run: what else the runs take, as `wb.simulate` does: cluster, models, deployment, policies, step,
            kv_tokens, failures, ...

    Raises:
        UserError: a promise that is kept at no load or at any, a trace too short for an interval.
    """
    slo = promised(slo)
    check_watching(progress)
    handed_on(of_the_run, needed=("cluster", "models"), others=("deployment",))
    for value, name in ((attainment, "attainment"), (warm_up, "warm_up")):
        if share(value, name) == 1 or (name == "attainment" and value == 0):
            raise InputError(f"is {value}", "give a share between 0 and 1", field=name)
    positive(precision, "precision")
    drawn = callable(trace)
    children = replication_seeds(seed, replications) if drawn else [root_of(seed)]
    if drawn and len(children) < 2:
        raise InputError("is 1, which gives no interval", "give 2 or more", field="replications")
    loads = []
    for number, child in enumerate(children, start=1):
        played = trace(int(child.generate_state(1)[0])) if drawn else trace
        name = f"trace {number} of {len(children)}" if drawn else "load"
        one, table = told_hash_blocks(find_system(system), played), request_table(played)
        loads.append(_Loads(one, table, slo, attainment, warm_up, child, of_the_run, progress, name))
    if drawn:
        interval = student_interval([one.largest(0, precision) for one in loads])
        rate, ends = interval.mean, (interval.low, interval.high)
        method = f"Student over {len(loads)} traces"
    else:
        (one,) = loads
        rate, *ends = (one.largest(end, precision) for end in (0, -1, 1))
        method = f"{BATCHES} batches of consecutive requests"
    tried = pl.DataFrame(
        [(run, *row) for run, one in enumerate(loads) for row in one.rows()],
        schema=["run", "rate_per_s", "attainment", "gpu_allocated_s", "peak_gpus"],
        orient="row",
    )
    name = loads[0].system_name
    sentence = (
        f"{name} bears {rate:.4g} requests a second (95 %: {ends[0]:.4g} to {ends[1]:.4g}, {method}) while TTFT "
        f"{float(slo.ttft_s):g} s and TBT {float(slo.tbt_s):g} s are kept for {attainment:.0%}"
    )
    if loads[0].asked.system.scales:
        sentence += _cost(tried, rate, attainment, loads[0].table.height)
    sentence += "."
    return Capacity(
        rate_per_s=rate, low=ends[0], high=ends[1], method=method, attainment=attainment, tried=tried, sentence=sentence
    )


def _cost(tried: pl.DataFrame, rate: float, attainment: float, requests: int) -> str:
    """What the largest load took that was run and kept the promise, and whether smaller ones did not, in words."""
    reached = pl.col("attainment") >= attainment
    kept = tried.filter((pl.col("run") == 0) & reached).sort("rate_per_s")
    last = kept.row(-1, named=True)
    gpus, each_s = counted(round(last["peak_gpus"]), "GPU"), last["gpu_allocated_s"] / requests
    text = f"; it takes up to {gpus} at a time and {each_s:.3g} GPU seconds a request"
    uneven = tried.filter((reached & (pl.col("rate_per_s") > 1.05 * rate)) | (~reached & (pl.col("rate_per_s") < rate)))
    return text + ("; attainment does not fall evenly with the load, see `tried`" if uneven.height else "")


class _Loads:
    """Attainment at any load of one trace; each load is run once."""

    def __init__(self, system, table, slo, attainment, warm_up, seed, of_the_run, progress, name):
        self.table, self.slo, self.share, self.seed = table, slo, attainment, seed
        self.skip = int(warm_up * table.height)
        if table.height - self.skip < 2 * BATCHES:
            raise UserError(
                f"The trace has {table.height - self.skip} requests to count, too few for an interval; give at least "
                f"{2 * BATCHES}."
            )
        arrival_s = table["arrival_s"]
        span_s = float(arrival_s[-1] - arrival_s[0])
        if span_s <= 0:
            raise UserError("All requests of the trace arrive at once, so it has no load; give one with arrivals.")
        self.rate = (table.height - 1) / span_s
        self.asked = resolved(system, trace=table, slo=slo, **of_the_run)  # the instances are those of this load
        self.system_name, self.progress, self.name = self.asked.system.name, progress, name
        self.known: dict[float, tuple[float, float, float]] = {}
        self.cost: dict[float, tuple[float, float]] = {}

    def rows(self) -> list[tuple[float, ...]]:
        """(rate, attainment, GPU seconds, most GPUs at a time) of all loads that were run."""
        return sorted((self.rate * factor, found[0], *self.cost[factor]) for factor, found in self.known.items())

    def largest(self, end: int, precision: float) -> float:
        """The largest rate whose attainment (0), or an end of its interval (-1 lower, 1 upper), reaches the share."""
        good = self._some(end)
        if good is None:
            if end < 0:
                return 0.0
            raise UserError(
                f"{self.system_name} keeps the promise for {self._best:.1%} of the requests even where none meets "
                f"another, less than the {self.share:.0%} asked for; give a looser promise or faster hardware."
            )
        bad = 2 * good
        while self._reached(bad, end):
            good, bad = bad, 2 * bad
            if good > WIDEST:
                if end > 0:
                    return math.inf
                raise UserError(
                    f"{self.system_name} keeps the promise even when all {self.table.height:,} requests arrive at "
                    "once; give a longer trace."
                )
        while bad / good > 1 + precision:
            middle = math.sqrt(good * bad)
            good, bad = (middle, bad) if self._reached(middle, end) else (good, middle)
        return self.rate * math.sqrt(good * bad)

    def _some(self, end: int) -> float | None:
        """How much faster the trace may come: as it is, else slower and slower, and, where instances come and go, else
        faster; None for no load."""
        slower = [0.5**k for k in range(int(math.log2(WIDEST)) + 1)]
        faster = []
        if self.asked.system.scales:
            ticks = (self.table.height - 1) / self.rate / self.asked.system.tick_s
            slower = [factor for factor in slower if factor == 1 or ticks / factor <= MOST_TICKS]
            faster = [2.0**k for k in range(1, MOST_FASTER + 1)]
        return next((factor for factor in (*slower, *faster) if self._reached(factor, end)), None)

    @property
    def _best(self) -> float:
        return max(found[0] for found in self.known.values())

    def _reached(self, factor: float, end: int) -> bool:
        if factor not in self.known:
            if self.progress is not None:
                self.progress(f"{self.name}: {self.rate * factor:.4g} requests/s")
            table = self.table.with_columns(arrival_s=pl.Series(self.table["arrival_s"].to_numpy() / factor))
            run = run_of(self.asked._replace(table=table), seed=self.seed)
            self.known[factor] = self._attained(run)
            self.cost[factor] = (run.gpu_allocated_s, run.peak_gpus)
        mean, low, high = self.known[factor]
        return (low, mean, high)[end + 1] >= self.share

    def _attained(self, run: Run) -> tuple[float, float, float]:
        """Attainment and the ends of its interval."""
        kept, weight = (values[self.skip :] for values in run.kept(self.slo))
        kept, weight = kept[weight > 0], weight[weight > 0]
        if kept.size < 2 * BATCHES:
            raise UserError(f"Only {kept.size} requests count towards the promise; give at least {2 * BATCHES}.")
        mean = float((kept * weight).sum() / weight.sum())
        interval = batch_means(kept * weight / weight.mean(), BATCHES).interval
        return mean, min(mean, interval.low), max(mean, interval.high)
