"""What the paper leaves out: how jobs on the same servers slow each other down, by formula, simulation and for real."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.chains import (
    Composition,
    Fleet,
    JobList,
    Served,
    TokenTimes,
    chains_of,
    compose,
    dispatch_path,
)
from workbench.chains.simulated import simulate_dispatch, simulate_steps
from workbench.queueing import Path
from workbench.results import Verdict

NOMINAL, SHARED = "as the paper has it", "shared pace"
ONE_BY_ONE, BATCHED = "passes one by one", "passes in batches"
HOWS = (NOMINAL, SHARED, ONE_BY_ONE, BATCHED)
LAYERS, GB = 12, 10**9
MEMORY, BLOCK, CACHE = (98, 111, 66, 66), 10, 1
"""Tenths of a GB: memory of the servers, weights of a block, cache of a job for a block."""

FARTHER, SLOWER = (1.0, 1.25, 1.0, 1.5), (1.0, 1.0, 1.5, 1.5)
"""Round trips and seconds of a block over those of the parameters."""

PROMPT_SHARE = 1 / 6
"""Seconds that a token of a prompt takes over those of a further token: prompts read the weights once."""

AT_ONCE = {"full": (1, 2, 3, 4, 6, 9), "quick": (1, 6)}
STREAM = {"full": 16, "quick": 2}
QUICK_THETA = 1.0
"""How far quick real runs stretch time: not at all. Whole ones find out what the machine keeps up with."""


class Bed(NamedTuple):
    """Four servers, their chains, and seconds of tokens."""

    made: Composition
    times: TokenTimes
    chains: Served
    usual: tuple[float, float, float]

    def jobs(self, arrival_s: np.ndarray, context: Context) -> JobList:
        """Jobs alike, at these instants."""
        work = np.tile(np.array(self.usual), (arrival_s.size, 1))
        return JobList(arrival_s, work, context.random("ties").random((arrival_s.size, 2)))


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["slowdown"]
    most = table.filter((pl.col("jobs") == table["jobs"].max()) & (pl.col("how") != NOMINAL))
    if not len(most):
        return "By the paper a job takes the same seconds however many others are there."
    last = {row["how"]: row for row in most.to_dicts()}  # of several backends the last: the real run where there is one
    texts = [f"{row['slowdown']:.3g} with {how}" for how, row in last.items()]
    return f"With {most['jobs'][0]} jobs at once, one takes {', '.join(texts)} times its nominal seconds."


def _judge(draft: Draft) -> list[Verdict]:
    """Eq. 2 of the paper for a job alone, and its assumption that others do not matter, against the real run."""
    real = {name: table.filter(pl.col("backend").is_in(["torch", "recorded"])) for name, table in draft.tables.items()}
    if "alone" not in real or not len(real["alone"]):
        return []
    ratio = (real["alone"]["seconds"] / real["alone"]["nominal_s"]).to_list()
    slowed = real["slowdown"].filter(pl.col("jobs") == real["slowdown"]["jobs"].max())
    by = {how: part["slowdown"].mean() for (how,), part in slowed.group_by("how")}
    common = {"mode": draft.mode, "seeds": draft.seeds}
    return [
        Verdict(
            claim="a job alone takes the sum of τc + τp m over its chain",
            published="eq. 2",
            ours=f"{min(ratio):.3f} to {max(ratio):.3f} times that, on {len(ratio)} chains",
            tolerance=(0.99, 1.1),
            strength="within 10 %",
            verdict="reproduced" if min(ratio) >= 0.99 and max(ratio) <= 1.1 else "differs",
            reason="real processes. Assumed here: nothing else runs on the machine",
            **common,
        ),
        Verdict(
            claim="service takes the same time however many jobs the servers hold",
            published="assumed throughout",
            ours=f"{by[ONE_BY_ONE]:.2f} times as long with {slowed['jobs'][0]} jobs at once",
            tolerance=(0.9, 1.1),
            strength="within 10 %",
            verdict="reproduced" if by[ONE_BY_ONE] <= 1.1 else "differs",
            reason="Assumed here: a server computes one pass after the other, as PETALS does; where it computes passes "
            f"for the same blocks together, the real run is {by[BATCHED]:.2f} times as long",
            **common,
        ),
    ]


@experiment(
    "chains/concurrency",
    title="Do jobs slow each other down?",
    question="How much longer does a job take the more others its servers hold, which the paper leaves out?",
    backends=("analytic", "compiled", "simpy", "torch"),
    seconds={"analytic": 0.02, "compiled": 0.05, "simpy": 0.5, "torch": 90},
    draw="chains_real.concurrency",
    panels=("slow-down", "stream", "alone"),
    say=_say,
    judges=(_judge,),
    agrees=(
        Agree("seconds of a job alone on a chain", "alone", ("chain",), "seconds",
              {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "torch"): (-0.01, 0.10)}),
        Agree("mean seconds at a shared pace", "shared", ("jobs",), "mean_s", {("compiled", "simpy"): (-1e-9, 1e-9)}),
        Agree("mean seconds with passes one by one", "steps", ("jobs",), "mean_s",
              {("simpy", "torch"): (-0.05, 0.10)}),
    ),
)  # fmt: skip
def concurrency(
    context: Context,
    *,
    round_trip_s: Annotated[
        float, Par("Round trip of the nearest server", "s", low=0.005, high=0.2, log=True, free=True, source="chosen")
    ] = 0.03,
    block_s: Annotated[
        float,
        Par("A further token in a block of a fast server", "s", low=0.001, high=0.05, log=True, free=True,
            source="chosen: computing takes about as long as the way"),
    ] = 0.006,
    prompt_tokens: Annotated[int, Par("Tokens in", low=1, high=64, free=True, source="chosen")] = 16,
    output_tokens: Annotated[int, Par("Tokens out", low=8, high=64, free=True, source="chosen")] = 12,
    reserved: Annotated[int, Par("Jobs reserved for (c)", low=1, high=6, free=True, source="chosen")] = 6,
    arrival_rate_per_s: Annotated[
        float, Par("Arrivals of the stream", "1/s", low=0.2, high=5.0, step=0.1, free=True, source="chosen")
    ] = 2.0,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Mean seconds of jobs that start together, of one alone on each chain, and of a stream; 12 blocks, four servers.

    Jobs join the fastest free chain. *As the paper has it*: nominal seconds. *Shared pace*: a job slows down where its
    servers would be busy for more than all of their time. *Passes one by one*, *in batches*: every pass is followed,
    and queues. The real run has a small transformer in four processes; round trips and seconds of blocks are waited
    for, memory is counted in slots.
    """
    bed = _bed(round_trip_s, block_s, prompt_tokens, output_tokens, reserved)
    every = [count for count in AT_ONCE[context.mode] if count <= bed.made.job_servers]
    rng = context.random("stream")
    arrival_s = np.cumsum(rng.exponential(1 / arrival_rate_per_s, STREAM[context.mode]))
    stream = bed.jobs(arrival_s - arrival_s[0], context)
    nominal_s = [bed.made.chains[chain].service_s for chain in bed.chains.order]
    taken_s = np.repeat(nominal_s, bed.chains.slots)  # of jobs that start together: the fastest chains fill first
    slowdown, streams, alone = [], [], []
    with ExitStack() as stack:
        runs = _real(context, bed, stack) if context.backend == "torch" else _computed(context, bed)
        for how, run in runs.items():
            for count in every:
                path = run(bed.jobs(np.zeros(count), context), "jffc")
                slowdown.append((how, count, float((path.finish_s - path.start_s).mean())))
            path = run(stream, "jffc")
            streams += [(how, job, *row) for job, row in enumerate(zip(path.arrival_s, path.response_s, strict=True))]
        for k, chain in enumerate(bed.chains.order.tolist() if not runs or ONE_BY_ONE in runs else ()):
            seconds = nominal_s[k]
            if ONE_BY_ONE in runs:
                seconds = float(runs[ONE_BY_ONE](bed.jobs(np.zeros(1), context), _only(k)).response_s[0])
            alone.append((_named(bed.made, chain), seconds, nominal_s[k]))
    _cite(context, [run for run in runs.values() if isinstance(run, _Real)])
    if not runs:
        slowdown = [(NOMINAL, count, float(taken_s[:count].mean())) for count in every]
    table = pl.DataFrame(
        [(how, count, mean_s, mean_s / taken_s[:count].mean()) for how, count, mean_s in slowdown],
        schema=["how", "jobs", "mean_s", "slowdown"], orient="row",
    )  # fmt: skip
    known = [(f"mean seconds, {how}", str(count), mean_s, "s") for how, count, mean_s in slowdown]
    tables = {"slowdown": table}
    if alone:
        tables["alone"] = pl.DataFrame(alone, ["chain", "seconds", "nominal_s"], orient="row")
    if streams:
        tables["stream"] = pl.DataFrame(streams, ["how", "job", "arrival_s", "response_s"], orient="row")
    for name, how in (("shared", SHARED), ("steps", ONE_BY_ONE)):
        if how in runs:
            tables[name] = table.filter(pl.col("how") == how).drop("how")
    return {**tables, "headline": headline(known)}


def _named(made: Composition, chain: int) -> str:
    return " - ".join(f"j{server + 1}" for server in made.chains[chain].servers)


def _bed(round_trip_s: float, block_s: float, prompt_tokens: int, output_tokens: int, reserved: int) -> Bed:
    usual = (1.0, float(prompt_tokens), float(output_tokens - 1))
    times = TokenTimes(
        np.array([[far * round_trip_s, 0.0, far * round_trip_s] for far in FARTHER]),
        np.array([[0.0, slow * block_s * PROMPT_SHARE, slow * block_s] for slow in SLOWER]),
    )
    fleet = Fleet(
        memory_bytes=np.array(MEMORY) * GB // 10,
        communication_s=times.communication_s @ usual,
        compute_s=times.compute_s @ usual,
        layers=LAYERS,
        block_bytes=BLOCK * GB // 10,
        cache_bytes=CACHE * GB // 10,
    )
    made = compose(fleet, reserved)
    return Bed(made, times, chains_of(made, times, usual), usual)


def _computed(context: Context, bed: Bed) -> dict[str, Callable[..., Path]]:
    """By name, what takes jobs and a policy and gives their path."""
    chains, times = bed.chains, bed.times
    if context.backend == "analytic":
        return {}
    if context.backend == "compiled":
        return {
            NOMINAL: lambda jobs, policy: dispatch_path(jobs, chains, policy),
            SHARED: lambda jobs, policy: dispatch_path(jobs, chains, policy, contention=True),
        }
    return {
        ONE_BY_ONE: lambda jobs, policy: simulate_steps(jobs, chains, times, policy),
        BATCHED: lambda jobs, policy: simulate_steps(jobs, chains, times, policy, batched=True),
        SHARED: lambda jobs, policy: simulate_dispatch(jobs, chains, policy, contention=True),
    }


def _only(k: int) -> Callable:
    def policy(inside, slots, rate_per_s, waiting, draw, memory):
        return k

    return policy


class _Real:
    """Jobs by real processes, and how punctual they were."""

    def __init__(self, context: Context, bed: Bed, pool: Any, how: str):
        self.context, self.bed, self.pool, self.how = context, bed, pool, how
        self.thetas: list[float] = []
        self.overheads: list[float] = []
        self.waiting: list[float] = []

    def __call__(self, jobs: JobList, policy: str | Callable) -> Path:
        from workbench.chains.real import serve_chains

        self.context.tell(f"real run: {jobs.arrival_s.size} at once or in a stream, {self.how}")
        run = serve_chains(
            self.bed.made, self.bed.times, jobs, policy=policy, batched=self.how == BATCHED,
            theta=QUICK_THETA if self.context.mode == "quick" else None, seed=self.context.seed, pool=self.pool,
            stop=self.context.give_way,
        )  # fmt: skip
        self.thetas.append(run.scale.theta)
        self.overheads.append(run.overhead)
        self.waiting.append(run.waiting_share)
        return Path(*(run.jobs[name].to_numpy() for name in ("arrival_s", "start_s", "finish_s")))


def _real(context: Context, bed: Bed, stack: ExitStack) -> dict[str, _Real]:
    """The same with real processes."""
    from workbench.executor.processes import Pool

    pool = stack.enter_context(Pool(bed.made.fleet.servers))
    return {how: _Real(context, bed, pool, how) for how in (ONE_BY_ONE, BATCHED)}


def _cite(context: Context, runs: list[_Real]) -> None:
    """Enter θ, overhead and the share of waiting of real runs into the ledger."""
    for run in runs:
        text = "seconds stretch by θ, here the most of all runs; 1 is real time"
        context.cite(f"θ of {run.how}", max(run.thetas), "1", "chosen", text)
        text = "mean lateness of a pass over what computing it should take, the worst of all runs"
        context.cite(f"overhead of {run.how}", max(run.overheads), "1", "measured", text)
        text = "least share of the time that servers waited for round trips and seconds of blocks: the run is paced"
        context.cite(f"waiting of {run.how}", min(run.waiting), "1", "measured", text)
