"""An offline job in the valleys of an online instance: how much of it fits, who pays, and what its order is worth."""

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from workbench.blending.model.questions import reordering_gain
from workbench.blending.policy import INTERFERENCE, SLOPES
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.showdown import common
from workbench.catalogue.spec import Agree, experiment
from workbench.latency import step_time
from workbench.operating import Rule, Run
from workbench.operating.system_record import System
from workbench.profiles import SLO, Cluster, Deployment, Model, check_fits
from workbench.profiles import slo as make_slo
from workbench.serving import ENGINES
from workbench.workloads import Poisson, fixed_lengths, generate

ALONE, LAST, EQUAL = "no job", "job behind", "job as equal"
WAYS = (ALONE, LAST, EQUAL)
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Online load over what the instance bears."""

PROMPTS, OUTPUTS, ENDS = "prompts first", "outputs first", "from both ends"
ORDERS = (PROMPTS, OUTPUTS, ENDS)
"""Of a job of two kinds of requests; from both ends of the list by density, as BlendServe, is one of each by turns."""

NONE, BEST = "nothing overlaps", "all overlaps, at best"
FILLED = 1 / 3
"""Of the time that is watched: by then as many requests finish as are begun, and counting starts."""

QUICK_S = 45.0


class Kind(NamedTuple):
    """Requests of the job: tokens of a prompt and of an output."""

    prompt: int
    output: int


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    first = tables["served"]["backend"][0]
    table = tables["served"].filter((pl.col("backend") == first) & (pl.col("way") == LAST)).sort("share")
    means = table.group_by("share", maintain_order=True).agg(pl.col("online_per_s", "job_per_s").mean())
    row = means.row(len(means) // 2, named=True)
    order = tables["orders"].filter(pl.col("backend") == first)
    spread = order["seconds"].max() / order["seconds"].min() - 1
    text = (
        f"Beside {row['online_per_s']:.2g} online requests a second an instance serves {row['job_per_s']:.2g} of an "
        f"offline job"
    )
    if first == "analytic":
        return f"{text}; in an engine that overlaps compute and memory the job's order is worth {spread:.0%} at most."
    return f"{text}; in which order the job comes makes {spread:.0%}, as nothing overlaps in this engine."


@experiment(
    "showdown/valleys",
    title="An offline job in an online instance's valleys",
    question="How much of an offline job fits beside online requests, what does it cost them, and what is its order "
    "worth?",
    backends=("analytic", "compiled", "simpy"),
    seconds={"analytic": 0.05, "compiled": 2.0, "simpy": 8.0},
    draw="showdown_valleys.valleys",
    panels=("job", "kept", "orders"),
    say=_say,
    stochastic=True,
    agrees=(
        Agree(
            "both together", "served", ("way", "share", "seed"), "both_per_s",
            {("analytic", "simpy"): (-0.1, 0.1), ("analytic", "compiled"): (-0.1, 0.1), ("compiled", "simpy"): (0, 0)},
        ),
        Agree("promise kept", "served", ("way", "share", "seed"), "kept", {("compiled", "simpy"): (0, 0)}),
        Agree("job's end", "orders", ("order", "seed"), "seconds", {("compiled", "simpy"): (0, 0)}),
    ),
)  # fmt: skip
def valleys(
    context: Context,
    *,
    cluster: common.ClusterPar = "blitzscale-a",
    model: common.ModelPar = "llama-3-8b",
    prompt_tokens: common.Prompt = 2000,
    output_tokens: common.Output = 100,
    busy: Annotated[
        float, Par("Online load over what an instance bears", low=0.05, high=0.9, step=0.05, source="chosen: a valley")
    ] = 0.5,
    job: Annotated[int, Par("Requests of each kind in the job", low=10, high=500, step=10, source="chosen")] = 150,
    long_output: Annotated[
        int, Par("Output tokens of the kind with short prompts", low=50, high=2000, log=True, source="chosen")
    ] = 600,
    duration_s: Annotated[float, Par("Watched for", "s", low=30, high=600, step=30, source="chosen")] = 120.0,
    ttft_s: common.Ttft = 0.45,
    tbt_s: common.Tbt = 0.15,
    seeds: common.Seeds = 3,
) -> dict[str, pl.DataFrame]:
    """Requests a second of both, share of online requests whose promise is kept, and seconds until a job is done.

    One instance; the job is there from the beginning and never ends, of requests like the online ones. *Job behind*:
    online requests go first at every admission, while what runs is not stopped. *Job as equal*: first come, first
    served.

    Formula: an instance that is never idle serves the same number of requests a second, whosesoever they are, so that
    what online requests leave is the job's. As many run as memory, slots and the tokens of a step allow, and each step
    brings as many prompts as requests end in it; nothing is evicted, and filling takes no time, so that a simulation of
    long outputs serves less. A job of two kinds, of long prompts and of long outputs, then takes its seconds over the
    share that is left. Where an engine overlaps compute and memory, the order of a job gains at most
    what `workbench.blending` says for its density, prompts counted as compute, and outputs in the largest batches as
    memory, with NanoFlow's slopes. The simulated engine does one after the other, as vLLM does, so that orders differ
    by how they begin and end alone.
    """
    hosts, shape = context.cluster(cluster), context.model(model)
    bears = _bears(context, shape, hosts, Kind(prompt_tokens, output_tokens))
    kinds = (Kind(prompt_tokens, 20), Kind(100, long_output))
    if context.backend == "analytic":
        served = pl.DataFrame([row for share in SHARES for row in _left(context, share, bears, seeds)])
        orders = _bounds(context, shape, hosts, kinds, job, busy)
        return {"served": served, "orders": orders, "headline": _head(served, orders)}
    promise = make_slo(ttft_s=ttft_s, tbt_s=tbt_s)
    one = common.levelled(common.IDEAL).replaced(autoscaler=Rule(policy="none"))
    if context.mode == "quick":
        duration_s, seeds = min(duration_s, QUICK_S), 1
    setting = _Setting(context, one, hosts, shape, promise, duration_s)
    like = Kind(prompt_tokens, output_tokens)
    rows, ends = [], []
    for seed in range(context.seed, context.seed + seeds):
        for share in SHARES:
            online = _online(share * bears, like, duration_s, seed)
            endless = [like] * (2 + round(1.5 * bears * duration_s))
            for way in WAYS:
                context.tell(f"{way}, load {share:g}, seed {seed}")
                rows.append({"way": way, "share": share, "seed": seed, **setting.told(online, endless, way, seed)})
        online = _online(busy * bears, like, 10 * duration_s, seed)
        for order in ORDERS:
            run, mine = setting.run(online, _ordered(order, kinds, job), LAST, seed, until_s=None)
            ends.append(
                {"order": order, "seed": seed, "seconds": float(run.requests["finish_s"].to_numpy()[mine].max())}
            )
    served, orders = pl.DataFrame(rows), pl.DataFrame(ends)
    return {"served": served, "orders": orders, "headline": _head(served, orders)}


class _Setting(NamedTuple):
    context: Context
    system: System
    cluster: Cluster
    model: Model
    promise: SLO
    duration_s: float

    def run(
        self, online: pl.DataFrame, job: list[Kind], way: str, seed: int, until_s: float | None
    ) -> tuple[Run, np.ndarray]:
        """Serve both, the job there from the beginning, and tell which requests are the job's, bool[requests]."""
        lengths = {"prompt_tokens": [kind.prompt for kind in job], "output_tokens": [kind.output for kind in job]}
        offline = pl.DataFrame({"arrival_s": [0.0] * len(job), **lengths}).with_columns(
            pl.lit(1 if way == LAST else 0).alias("priority"), mine=True
        )
        both = online.with_columns(pl.lit(0).alias("priority"), mine=False)
        both = both if way == ALONE else pl.concat([offline, both])
        both = both.sort("arrival_s", maintain_order=True)
        run = common.run(
            self.context, self.system, self.cluster, self.model, both.drop("mine"), seed, self.promise,
            **({} if until_s is None else {"until_s": until_s}),
        )  # fmt: skip
        return run, both["mine"].to_numpy()

    def told(self, online: pl.DataFrame, job: list[Kind], way: str, seed: int) -> dict[str, float | None]:
        """What was served in the time that is watched, and for how many online requests the promise was kept."""
        run, mine = self.run(online, job, way, seed, self.duration_s)
        ends_s = pl.col("finish_s")
        counted = (ends_s > FILLED * self.duration_s) & (ends_s <= self.duration_s)
        table = run.requests.with_columns(mine=mine, done=counted)
        done = {name: table.filter(pl.col("done") & (pl.col("mine") == whose)).height for name, whose in
                (("online_per_s", False), ("job_per_s", True))}  # fmt: skip
        theirs = table.filter(~pl.col("mine"))
        waits = (theirs["first_token_s"] - theirs["arrival_s"]).fill_nan(None)
        most_s = float(self.promise.ttft_s)
        late = theirs["arrival_s"] > self.duration_s - most_s  # whose promise is not due yet
        kept = ((waits <= most_s).fill_null(False) | late).mean()
        per_s = {name: count / ((1 - FILLED) * self.duration_s) for name, count in done.items()}
        return {**per_s, "both_per_s": None if way == ALONE else sum(per_s.values()), "kept": kept}


def _online(rate_per_s: float, kind: Kind, duration_s: float, seed: int) -> pl.DataFrame:
    trace = generate(Poisson(rate_per_s=rate_per_s), fixed_lengths(*kind), duration_s=duration_s, seed=seed)
    return trace.requests.select("arrival_s", "prompt_tokens", "output_tokens").with_columns(
        pl.col("prompt_tokens", "output_tokens").cast(pl.Int64)
    )


def _ordered(order: str, kinds: tuple[Kind, Kind], count: int) -> list[Kind]:
    dense, light = kinds
    if order == ENDS:
        return [dense, light] * count
    return [dense] * count + [light] * count if order == PROMPTS else [light] * count + [dense] * count


def _bears(context: Context, model: Model, cluster: Cluster, kind: Kind) -> float:
    """Requests/s of an instance for which more than enough wait: in the mean step, as many begin as end."""
    step, engine = step_time(model, cluster.accelerator, Deployment()), ENGINES["continuous"]
    running = min(engine.slots, engine.budget * kind.output / kind.prompt, _largest(model, cluster, kind))
    begin = running / kind.output
    stored = max(0, kind.prompt - engine.budget) / 2  # of a prompt that comes in several chunks, in the mean one
    kept = running * (kind.prompt + kind.output / 2)
    seconds = float(step.mixed_s(begin * kind.prompt, running, kept, stored, max(begin, 1.0)))
    return context.cite(
        "requests an instance bears", begin / seconds, "1/s", "computed", f"{step.source}; full batches"
    )


def _largest(model: Model, cluster: Cluster, kind: Kind) -> int:
    """Requests whose KV fits, at least one."""
    return max(1, check_fits(model, cluster.accelerator).kv_tokens // (kind.prompt + kind.output))


def _left(context: Context, share: float, bears: float, seeds: int) -> list[dict[str, Any]]:
    online = {"online_per_s": share * bears}
    rows = []
    for seed in range(context.seed, context.seed + (1 if context.mode == "quick" else seeds)):
        at = {"share": share, "seed": seed}
        rows.append({"way": ALONE, **at, **online, "job_per_s": 0.0, "both_per_s": None, "kept": None})
        rows.append({"way": LAST, **at, **online, "job_per_s": (1 - share) * bears, "both_per_s": bears, "kept": None})
        rows.append({"way": EQUAL, **at, "online_per_s": 0.0, "job_per_s": bears, "both_per_s": bears, "kept": None})
    return rows


def _bounds(
    context: Context, model: Model, cluster: Cluster, kinds: tuple[Kind, Kind], count: int, busy: float
) -> pl.DataFrame:
    """Seconds of the job in what online requests leave, without overlap and with all that NanoFlow's slopes allow."""
    step = step_time(model, cluster.accelerator, Deployment())
    compute_s = memory_s = 0.0
    for kind in kinds:
        prompt, output = kind
        compute_s += count * float(step.prefill_s(prompt))
        batch = min(count, _largest(model, cluster, kind))
        memory_s += count * output * float(step.decode_s(batch, batch * (prompt + output / 2))) / batch
    slopes = SLOPES[INTERFERENCE]
    gain = float(reordering_gain(compute_s / memory_s, *slopes))
    context.cite("density of the job", compute_s / memory_s, "1", "computed", "prompts over outputs, by step times")
    context.cite("largest gain of its order", gain, "1", "computed", f"slopes {slopes[0]:.2g} and {slopes[1]:.2g}")
    whole_s = (compute_s + memory_s) / (1 - busy)
    return pl.DataFrame({"order": [NONE, BEST], "seed": [context.seed] * 2, "seconds": [whole_s, whole_s / gain]})


def _head(served: pl.DataFrame, orders: pl.DataFrame) -> pl.DataFrame:
    behind = served.filter(pl.col("way") == LAST)
    mean = behind.group_by("share", maintain_order=True).agg(pl.col("job_per_s").mean())
    known = [("job beside online requests", row["share"], row["job_per_s"], "1/s") for row in mean.to_dicts()]
    ends = orders.group_by("order", maintain_order=True).agg(pl.col("seconds").mean())
    known += [(f"job done, {row['order']}", "", row["seconds"], "s") for row in ends.to_dicts()]
    return headline(known)
