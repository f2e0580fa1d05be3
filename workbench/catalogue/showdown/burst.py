"""One burst, one engine, one autoscaler: what do source, plan, partial serving and cache make of it?"""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.showdown import common
from workbench.catalogue.showdown.common import ALLCACHE, BLITZ, FAASNET, IDEAL, LAMBDA, NCCL, SLLM, SYSTEMS
from workbench.catalogue.spec import Agree, experiment
from workbench.errors import InputError
from workbench.operating import Rule, Run
from workbench.profiles import SLO, Cluster, Model
from workbench.profiles import slo as make_slo
from workbench.serving.model import pool_on, weights_on
from workbench.transfer.model import Hockney, completion

TARGETS = (1, 2, 4, 8)
"""Instances that start at once beside one that is up."""

FROM = {
    "dram": "from host memory", "ssd": "from SSD", "near": "from a GPU of its host", "chain": "by a chain of hosts",
    "multicast": "by multicast", "ideal": "at once",
}  # fmt: skip
"""What the ways of weights in the tables are called in words."""

MEASURES = (
    "ttft_mean_s", "ttft_p99_s", "tbt_max_p99_s", "tbt_scaling_p99_s", "tbt_steady_p99_s", "gpu_allocated_s",
    "gpu_active_s", "attainment", "detecting_s", "first_work_s", "alone_s", "loads", "weight_bytes", "host_copies",
)  # fmt: skip


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    if "summary" not in tables:
        table = tables["starts"].filter(pl.col("targets") == pl.col("targets").max())
        rows = table.filter(pl.col("seconds") > 0).sort("seconds").to_dicts()
        return (
            f"{rows[0]['targets']} instances that start at once have their weights after {rows[0]['seconds']:.3g} s by "
            f"{rows[0]['system']} ({FROM[rows[0]['way']]}) and after {rows[-1]['seconds']:.3g} s by "
            f"{rows[-1]['system']} ({FROM[rows[-1]['way']]})."
        )
    table = tables["summary"].filter(pl.col("backend") == tables["summary"]["backend"][0])
    ttft = table.filter((pl.col("measure") == "ttft_p99_s") & (pl.col("system") != IDEAL)).sort("mean").to_dicts()
    gpu = dict(table.filter(pl.col("measure") == "gpu_allocated_s").select("system", "mean").rows())
    best, worst = ttft[0], ttft[-1]
    return (
        f"On the same burst the P99 of TTFT is {best['mean']:.3g} s by {best['system']} with "
        f"{gpu[best['system']]:.0f} GPU-seconds, and {worst['mean']:.3g} s by {worst['system']} with "
        f"{gpu[worst['system']]:.0f}."
    )


@experiment(
    "showdown/burst",
    title="The same burst for all",
    question="What do the source of the weights, the plan by which they travel, serving before they are complete, and "
    "what hosts keep, each make of the same burst?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.05, "compiled": 3.0, "simpy": 15.0},
    draw="showdown.burst",
    panels=("pareto", "ttft", "starts", "harm"),
    say=_say,
    stochastic=True,
    agrees=(
        Agree("TTFT P99", "runs", ("system", "seed"), "ttft_p99_s", {("compiled", "simpy"): (0, 0)}),
        Agree("GPU time", "runs", ("system", "seed"), "gpu_allocated_s", {("compiled", "simpy"): (0, 0)}),
        Agree(
            "weights there", "starts", ("system", "way", "targets"), "seconds",
            {("analytic", "simpy"): (-1e-9, 1e-9), ("analytic", "compiled"): (-1e-9, 1e-9)},
        ),
    ),
)  # fmt: skip
def burst(
    context: Context,
    *,
    cluster: common.ClusterPar = "blitzscale-a",
    model: common.ModelPar = "llama-3-8b",
    calm_per_s: Annotated[
        float, Par("Requests a second before and after", low=0.1, high=20, log=True, source="chosen: one instance")
    ] = 4.0,
    burst_per_s: Annotated[
        float, Par("Requests a second in the burst", low=1, high=200, log=True, source="chosen: ten times as many")
    ] = 40.0,
    burst_s: Annotated[float, Par("Length of the burst", "s", low=1, high=60, step=1, source="chosen")] = 10.0,
    prompt_tokens: common.Prompt = 2000,
    output_tokens: common.Output = 100,
    ttft_s: common.Ttft = 0.45,
    tbt_s: common.Tbt = 0.15,
    rule: Annotated[
        str,
        Par(
            "Instances by",
            choices=tuple(common.RULES),
            source="backlog: BlitzScale's artifact; rate: chosen, the same for all whatever starts cost",
        ),
    ] = "backlog",
    seeds: common.Seeds = 5,
) -> dict[str, pl.DataFrame]:
    """Seconds until weights are there, by formula and by a scale-out on its own; TTFT, TBT, GPU time, host copies and
    bytes of the burst, means over seeds and paired differences from the ideal.

    All systems have one engine, one autoscaler and one router, see `common.ONE_FOR_ALL`. By the rule *backlog* the
    ideal is no strict floor: slow starts leave more waiting, so that more instances are asked for. By *rate* it is one.
    """
    hosts, shape = context.cluster(cluster), context.model(model)
    if context.backend == "analytic":
        starts = _formula(context, hosts, shape)
        return {"starts": starts, "headline": _head(starts)}
    promise = make_slo(ttft_s=ttft_s, tbt_s=tbt_s)
    bears = common.capacity_per_s(context, shape, hosts, prompt_tokens, output_tokens) if rule == "rate" else 1.0
    starts = pl.concat([_started(context, hosts, shape, name, promise) for name in SYSTEMS])
    span_s, count = (min(burst_s, QUICK_S), 1) if context.mode == "quick" else (burst_s, seeds)
    rows = []
    for seed in range(context.seed, context.seed + count):
        table = common.burst_trace(calm_per_s, burst_per_s, span_s, prompt_tokens, output_tokens, seed).requests
        for name in SYSTEMS:
            context.tell(f"{name}, seed {seed}")
            one = common.levelled(name, rule, bears)
            run = common.run(context, one, hosts, shape, table, seed, promise)
            rows.append({"system": name, "seed": seed, **told(run)})
    runs = pl.DataFrame(rows)
    return {
        "runs": runs,
        "summary": common.paired(runs, MEASURES, IDEAL),
        "starts": starts,
        "headline": _head(starts),
    }


QUICK_S = 3.0
"""Of the burst in a quick run."""


def told(run: Run) -> dict[str, float]:
    """What one run is compared by; times of scale-outs are means over those that came to an end."""
    found, loads = run.metrics(), run.scaleouts.filter(pl.col("alone_s").is_not_nan())
    tbt = run.requests.filter(pl.col("tbt_max_s").is_not_nan())["tbt_max_s"]

    def mean(late: str, early: str) -> float | None:
        return (loads[late] - loads[early]).drop_nans().mean()

    more = {
        "tbt_max_p99_s": tbt.quantile(0.99, "linear"),
        "detecting_s": mean("detected_s", "needed_s"),
        "first_work_s": mean("first_useful_s", "detected_s"),
        "alone_s": mean("alone_s", "detected_s"),
        "loads": found["scaleouts"],
        "host_copies": float(_copies(run)),
        "requests": float(run.requests.height),
        "done": found["done"],
    }
    return more | {name: found[name] for name in MEASURES if name not in more}


def _copies(run: Run) -> int:
    """Hosts whose memory keeps the model at the most: all, pinned ones, or all that an instance of it was on."""
    one, pool = run.system, run.scenario.pool
    if one.cached:
        return pool.hosts
    if one.path == "ideal":
        return 0
    if one.cache_bytes == 0:
        return one.pinned
    rows = [0, *run.scaleouts["instance"].to_list()]
    return len({row // pool.places for row in rows} | set(range(one.pinned)))


def _formula(context: Context, hosts: Cluster, shape: Model) -> pl.DataFrame:
    """Seconds until the last of some instances has its weights, by every way that a system may take."""
    rows = []
    for name, record in SYSTEMS.items():
        one = common.levelled(name)
        begin_s = one.engine_start.seconds + one.warm_up.seconds
        try:
            weights = weights_on(shape, hosts, 1, one.path, one.schedule, one.blocks)
        except InputError:
            continue  # no source states a link that the system needs
        for targets in TARGETS:
            ways = {}
            if name == IDEAL:
                ways["ideal"] = 0.0
            if name in (SLLM, ALLCACHE, LAMBDA):
                ways["dram"] = weights.bytes / weights.dram_bytes_per_s
            if name == SLLM and (ssd := _ssd(hosts)):
                ways["ssd"] = weights.bytes / ssd
            if name in (FAASNET, NCCL, LAMBDA):
                sent = weights.multicast
                cost = Hockney(bytes_per_s=sent.bytes_per_s, alpha_s=sent.alpha_s)
                done = completion(one.schedule, targets + 1, sent.blocks, weights.bytes, cost)["complete_s"]
                ways["multicast"] = float(done.max())
            if name == BLITZ:
                nic = hosts.host.nics * float(hosts.host.nic.rate()) / hosts.host.accelerators
                ways |= {"chain": weights.bytes / nic}
                if weights.near_bytes_per_s:
                    ways["near"] = weights.bytes / weights.near_bytes_per_s
            for way, seconds in ways.items():
                start_s = seconds + (begin_s if way != "ideal" else 0.0)
                rows.append({"system": name, "way": way, "targets": targets, "seconds": start_s})
        context.cite(f"{name} is", record, "", "published", one.source)
    return pl.DataFrame(rows)


def _ssd(hosts: Cluster) -> float | None:
    return pool_on(hosts, 1).ssd_each_bytes_per_s


def _started(context: Context, hosts: Cluster, shape: Model, name: str, promise: SLO) -> pl.DataFrame:
    """The same by a run: one instance is up, and as many requests come at once as shall start others beside it."""
    one = common.levelled(name).replaced(autoscaler=Rule(policy="concurrency", parameters={"requests": 1.0}))
    parts = []
    for targets in TARGETS if context.mode == "full" else TARGETS[::3]:
        asked = {"arrival_s": [0.0] + [1.0] * targets, "prompt_tokens": 2000, "output_tokens": 4000}
        run = common.run(context, one, hosts, shape, pl.DataFrame(asked), context.seed, promise, until_s=40.0)
        first = run.scaleouts.filter(pl.col("detected_s") == pl.col("detected_s").min())
        ways = first.group_by(way="tier", maintain_order=True).agg(
            seconds=(pl.col("alone_s") - pl.col("detected_s")).max(), loads=pl.len()
        )
        if name == LAMBDA:  # a multicast beside loads from memory is of fewer targets than asked
            ways = ways.filter((pl.col("way") == "dram") | (pl.col("loads") == targets))
        parts.append(ways.select(pl.lit(name).alias("system"), "way", pl.lit(targets).alias("targets"), "seconds"))
    return pl.concat(parts)


def _head(starts: pl.DataFrame) -> pl.DataFrame:
    return headline(
        (f"weights there, {row['system']} by {row['way']}", row["targets"], row["seconds"], "s")
        for row in starts.to_dicts()
    )
