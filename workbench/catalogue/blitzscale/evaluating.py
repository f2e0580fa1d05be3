"""BlitzScale's evaluation on the serving engine: workloads, systems, and what is told of a run (Figures 17 to 22)."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.parameters import Par
from workbench.catalogue.tracing import replayed
from workbench.latency import step_time
from workbench.operating import Run, System, capacity, simulate, system
from workbench.profiles import SLO, Cluster, Deployment
from workbench.workloads import Trace, repeat

BLITZ, SLLM, SLLM_30, CACHED = "BlitzScale", "ServerlessLLM", "ServerlessLLM, 30 s", "AllCache"
FULL, HALF = "DistServe (full)", "DistServe (half)"
NETWORK, MULTICAST = "+Network", "+Multicast"
NAMES = {BLITZ: "blitzscale", MULTICAST: "blitzscale@multicast", NETWORK: "blitzscale@network",
         SLLM: "serverlessllm@blitzscale", SLLM_30: "serverlessllm@blitzscale", CACHED: "allcache",
         FULL: "distserve-full", HALF: "distserve-half"}  # fmt: skip
SCALED = (BLITZ, MULTICAST, NETWORK, SLLM, SLLM_30, CACHED)
RUNS = 5
"""Windows of a trace, drawn at random, of a full run."""

QUICK = 10.0
"""By which windows of quick runs are shorter."""
ROWS_FOR_CAPACITY = 1000
LONGEST = 4095
KEPT_S, KEPT_72B_S = 1 / 3, 1.0
_PAPER = "OSDI'25 paper"


class Workload(NamedTuple):
    """A model, its cluster, its trace.

    Attributes:
        name: as published.
        full: instances that compute prompts, and that decode, in a full provisioning.
        bounds: least and most of each where they scale.
        promise: seconds of TTFT and TBT, within which the largest load is told.
        keep_s: how long an idle instance keeps its place and weights.
        decode_least: least number that decode, of BlitzScale alone, where that is more than its bound.
    """

    name: str
    model: str
    tp: int
    cluster: str
    trace: str
    full: tuple[int, int]
    bounds: tuple[int, int]
    promise: tuple[float, float]
    keep_s: float
    decode_least: int = 0

    def deployment(self, name: str, half: str) -> Deployment:
        """How many instances a system may have."""
        if name in SCALED:
            least, most = self.bounds
            decode = (max(least, self.decode_least if name == BLITZ else 0), most)
            return Deployment(tp=self.tp, prefill=self.bounds, decode=decode)
        down = name == HALF and half == DOWN
        prefill, decode = (2 * (count // 2) if down else count for count in self.full)
        return Deployment(tp=self.tp, prefill=(1, prefill), decode=(1, decode))


BURST, CODE, CONV = (
    Workload("BurstGPT x 72B", "qwen2.5-72b", 4, "blitzscale-a", "burstgpt-1", (4, 4), (1, 7), (1.25, 0.2), KEPT_72B_S),
    Workload(
        "AzureCode x 8B", "llama-3-8b", 1, "blitzscale-b", "azure-code-2023", (10, 6), (2, 14), (0.45, 0.15), KEPT_S
    ),
    Workload(
        "AzureConv x 24B", "mistral-small-24b-2501", 2, "blitzscale-b", "azure-conv-2023", (5, 3), (1, 7), (1.25, 0.2),
        KEPT_S,
    ),
)  # fmt: skip
WORKLOADS = {one.name: one for one in (BURST, CODE, CONV)}
"""Counts and bounds: the artifact's configurations. The promise of 24B is chosen: that of 72B; none was published."""

PROMISES, PROMPTS = "promises", "prompt rate"
UP, DOWN = "rounded up", "rounded down"
STATISTICS = ("mean", "P95", "P99")

Load = Annotated[
    float,
    Par(
        "Mean load over the largest",
        low=0.1,
        high=1.0,
        step=0.05,
        status="published",
        source=f"{_PAPER} §6: half of the cluster's largest load",
    ),
]
Largest = Annotated[
    str,
    Par(
        "Largest load by",
        choices=(PROMISES, PROMPTS),
        source="chosen: the load at which a full provisioning keeps the promises of nine in ten requests",
    ),
]
Window = Annotated[
    float,
    Par(
        "Seconds of the trace", "s", low=5, high=600, step=5, free=True, source="chosen; published windows: 300, 480 s"
    ),
]
Statistic = Annotated[
    str,
    Par(
        "Reductions are of the",
        choices=STATISTICS,
        status="mentioned",
        source="two notes on Figure 17; not in the text",
    ),
]
Workloads = Annotated[
    tuple[str, ...],
    Par("Workloads", choices=tuple(WORKLOADS), free=True, status="published", source=f"{_PAPER} §6"),
]
DECODE_FIRST, ANYBODY = "who decodes, if there is one", "everybody"
HOST, CARDS = "the host's own links", "network cards"
SCALED_TOO, STAYING, THERE = "scaled", "scaled, KV stays", "all there"
EACH, ONE = "where they came to", "in one queue for all"
BATCHED = {"engine": "token-batches", "batch_tokens": 4096}
"""How instances batch in the artifact: prompts that wait in one queue go to whoever is free, up to 4,096 tokens."""

PROMISED, ALWAYS = "where the promise would be broken", "whenever a step gets shorter"
Senders = Annotated[
    str,
    Par("Weights are sent by", choices=(DECODE_FIRST, ANYBODY), status="published", source=f"{_PAPER} §5.1"),
]
"""Whom BlitzScale and +Multicast let send; +Network, which has no regard to directions, lets everybody."""
Inside = Annotated[
    str,
    Par(
        "Inside a host weights go over",
        choices=(HOST, CARDS),
        source="chosen: Table 1 gives cluster B 256 Gbps there; the artifact names NVLink only",
    ),
]
Decode = Annotated[
    str,
    Par(
        "BlitzScale's instances that decode",
        choices=(SCALED_TOO, STAYING, THERE),
        source="scaled: by the rule of all systems, where prompt instances turn into decoding ones when they have done "
        "what they have (§5.4); KV that waits on them is sent on, or stays and is decoded there (not said); all there: "
        "as many as in a full provisioning, all the time, as if that took no time",
    ),
]
NOT_BURST = {BURST.name: "the paper's cut of BurstGPT is not published; a generated trace stands in where none is here"}
Helps = Annotated[
    str,
    Par(
        "Tails of chains help",
        choices=(PROMISED, ALWAYS),
        status="published",
        source=f"{_PAPER} §5.2: only if stopping for the load would break it, judged by the load's whole time (chosen)",
    ),
]
Waits = Annotated[
    str,
    Par(
        "Prompts wait",
        choices=(ONE, EACH),
        status="published",
        source="in one queue for all: BlitzScale's artifact, whose instances take up to 4,096 tokens when they are "
        "free; where they came to: the router gives each away at once; the mean load is the same for both",
    ),
]
Half = Annotated[
    str,
    Par("Half of the instances", choices=(UP, DOWN), source="chosen: 3 + 2 of 5 + 3; the counts are not published"),
]


class Served(NamedTuple):
    """One run of one system."""

    workload: Workload
    system: str
    run: Run


def trace_of(context: Context, one: Workload) -> Trace:
    """The requests of a workload, prompts cut so that prompt and output are 4,095 tokens at most, all of one model."""
    found = replayed(context, one.trace, longest_s=3600.0)
    output = pl.col("output_tokens").clip(1, LONGEST - 1)
    table = found.requests.with_columns(model=pl.lit(one.model), output_tokens=output)
    table = table.with_columns(prompt_tokens=pl.min_horizontal("prompt_tokens", LONGEST - pl.col("output_tokens")))
    return found.model_copy(update={"requests": table})


_LARGEST: dict[str, float] = {}


def largest(context: Context, one: Workload, hosts: Cluster, trace: Trace, by: str) -> float:
    """The largest load of a full provisioning, requests/s.

    By *promises*: `wb.capacity` of the first thousand requests. By *prompt rate*: what its instances compute of the
    mean prompt.
    """
    deployment = one.deployment(FULL, UP)
    mean = float(trace.requests["prompt_tokens"].mean())
    if by == PROMPTS:
        step = step_time(one.model, hosts.accelerator, Deployment(tp=one.tp), source="blitzscale")
        rate = one.full[0] * mean / float(step.prefill_s(mean)) / mean
        return context.cite(f"largest load of {one.name}", rate, "1/s", "computed", "prompt rate of all instances")
    key = repr((context.backend, one, hosts.name, context.traces[-1], mean))
    if key not in _LARGEST:
        found = capacity(
            "distserve-full",
            cluster=hosts,
            models=one.model,
            trace=trace.requests.head(ROWS_FOR_CAPACITY),
            slo=slo_of(one),
            deployment=deployment,
            step="blitzscale",
            precision=0.03,
        )
        _LARGEST[key] = found.rate_per_s
    why = f"largest at which {FULL} keeps TTFT {one.promise[0]:g} s and TBT {one.promise[1]:g} s of 90 %"
    return context.cite(f"largest load of {one.name}", _LARGEST[key], "1/s", "computed", why)


def slo_of(one: Workload) -> SLO:
    """The promise of a workload."""
    return SLO(ttft_s=one.promise[0], tbt_s=one.promise[1])


def window_of(context: Context, one: Workload, trace: Trace, rate: float, window_s: float) -> Trace:
    """A window that begins at a request drawn at random, each stamp repeated as the artifact does."""
    window_s = window_s / QUICK if context.mode == "quick" else window_s
    arrival = trace.requests["arrival_s"].to_numpy()
    mean = (arrival.size - 1) / float(arrival[-1] - arrival[0])
    times = max(1, round(rate / mean))
    context.cite(f"repetitions of each stamp of {one.name}", times, "1", "computed", "to the load that is asked for")
    last = max(1, int(np.searchsorted(arrival, arrival[-1] - window_s)))
    start = float(arrival[int(context.random(f"window of {one.name}").integers(last))])
    return repeat(trace, times, (start, start + window_s))


def made(name: str, keep_s: float) -> System:
    """A system by its published name, with instances that scale by role, and BlitzScale's rule for all that scale."""
    changes: dict[str, Any] = {"name": name}
    if name in SCALED:
        changes |= {"keep_s": keep_s, "roles": "apart", "autoscaler": "roles:down_step=1"} | BATCHED
    if name == SLLM_30:
        changes |= {"cache_ttl_s": 30.0}
    return system(NAMES[name], **changes)


_SERVED: dict[str, Run] = {}
MOST_KEPT = 120


def serve(
    context: Context, one: Workload, hosts: Cluster, name: str, trace: Trace, half: str = UP, **changes: Any
) -> Served:
    """Let a system serve a window.

    Runs are remembered, for readings that ask for another statistic of them.
    """
    context.tell(f"{one.name}, {name}")
    rows = int(trace.requests.hash_rows().sum())
    key = repr((context.backend, one, hosts.model_dump_json(), name, half, rows, context.seed, sorted(changes.items())))
    if key in _SERVED:
        return Served(one, name, _SERVED[key])
    run = simulate(
        made(name, one.keep_s).replaced(**changes),
        cluster=hosts,
        models=one.model,
        trace=trace,
        deployment=one.deployment(name, half),
        slo=slo_of(one),
        backend=context.backend,
        seed=context.seed,
        step="blitzscale",
    )
    if len(_SERVED) >= MOST_KEPT:
        _SERVED.pop(next(iter(_SERVED)))
    _SERVED[key] = run
    return Served(one, name, run)


def prepared(
    context: Context, one: Workload, load: float, by: str, window_s: float, cluster: str = ""
) -> tuple[Cluster, Trace]:
    """The cluster of a workload, and the window at a share of its largest load."""
    hosts, trace = context.cluster(cluster or one.cluster), trace_of(context, one)
    context.model(one.model)
    rate = load * largest(context, one, hosts, trace, by)
    return hosts, window_of(context, one, trace, rate, window_s)


def changes_of(name: str, senders: str, inside: str, helps: str = PROMISED) -> dict[str, Any]:
    """What of a system that sends weights over the network is otherwise."""
    found = {"near": inside == HOST} if name in (BLITZ, MULTICAST, NETWORK) else {}
    found |= {"live": "always"} if name == BLITZ and helps == ALWAYS else {}
    return found | ({"decode_first": senders == DECODE_FIRST} if name in (BLITZ, MULTICAST) else {})


def waiting(waits: str) -> dict[str, Any]:
    """What of all systems is otherwise where prompts are given away as they come."""
    return {"batch_tokens": None} if waits == EACH else {}


def swept(
    context: Context,
    workloads: Sequence[str],
    systems: Sequence[str],
    load: float,
    by: str,
    window_s: float,
    *,
    senders: str = DECODE_FIRST,
    inside: str = HOST,
    decode: str = SCALED_TOO,
    helps: str = PROMISED,
    waits: str = ONE,
) -> list[Served]:
    """Every system on the same window of every workload."""
    served = []
    for name in workloads:
        one = WORKLOADS[name]
        if decode == THERE:
            one = one._replace(decode_least=one.full[1])
        hosts, trace = prepared(context, one, load, by, window_s)
        changes = {each: changes_of(each, senders, inside, helps) | waiting(waits) for each in systems}
        if decode == STAYING:
            turning = [each for each in systems if made(each, one.keep_s).mutate != "no"]
            changes |= {each: changes[each] | {"kv_stays": True} for each in turning}
        served += [serve(context, one, hosts, each, trace, **changes[each]) for each in systems]
        if name == BURST.name:
            context.incomparable = ""  # verdicts about this workload say so by themselves
    return served
