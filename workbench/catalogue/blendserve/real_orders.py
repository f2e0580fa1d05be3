"""A small job in four orders by a transformer that really shares prefixes, and the overlap measured on this machine."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.blending.model.fitting import PartCosts, run_seconds
from workbench.blending.model.ordering import BALANCE, DFS, GROUPS
from workbench.blending.model.planning import steps_of
from workbench.blending.model.running import serve
from workbench.blending.model.small_jobs import BLEND, Mixture, SmallJob, costs_from, ordered, small_job
from workbench.blending.model.steps import Step
from workbench.catalogue.blendserve.real_judging import judge
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment

ALONE, BESIDE = "one after the other", "beside each other"
NAMES = {DFS: "down the tree", BALANCE: "at random", GROUPS: "prefix groups", BLEND: "blended"}
OPERATIONS, PARTS = "matrix products and streaming", "prompts and decoding of a step"
SHAPE = {"layers": 2, "hidden": 256, "heads": 8, "kv_heads": 8, "ffn": 256, "longest": 1024}
"""Wide keys and values behind small matrices, so that on one core decoding takes as long as prompts do."""
BATCH = 128
ROUNDS = {"quick": (2, 1), "full": (25, 3)}
"""How often a reading and a job are repeated; the quickest of each counts."""
SMALL = Mixture(groups=4, members=4, writers=3, least=40, most=60)
_HERE = "the recorded machine's own calibration; a real run measures its own"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["orders"]
    table = table.filter((pl.col("backend") == table["backend"][-1]) & (pl.col("engine") == BESIDE)).sort("seconds")
    text = ", ".join(f"{row['seconds']:.3g} s {row['order']}" for row in table.iter_rows(named=True))
    if (slopes := tables.get("slopes")) is None:
        return f"With these costs the job takes {text}."
    hidden = slopes.filter(pl.col("work") == PARTS)["hidden"][0]
    return f"The job really takes {text}; {hidden:.0%} of a step's shorter part hides beside the longer one here."


@experiment(
    "blendserve/real-orders",
    title="A real job in four orders",
    question="Does a transformer that really shares prefixes and overlaps its work prefer the order that is foretold?",
    backends=("compiled", "torch"),
    seconds={"compiled": 1, "torch": 120},
    draw="blending_real.real_orders",
    panels=("orders", "overlap"),
    say=_say,
    judges=(judge,),
    agrees=(
        Agree("prompt tokens that are computed", "orders", ("order", "engine"), "computed_tokens",
              {("compiled", "torch"): (0.0, 0.0)}),
        Agree("time down the tree over the time of an order", "orders", ("order", "engine"), "over_dfs",
              {("compiled", "torch"): (-0.15, 0.15)}),
    ),
)  # fmt: skip
def real_orders(
    context: Context,
    *,
    groups: Annotated[int, Par("Groups that share 128 tokens", low=2, high=40, free=True)] = 14,
    members: Annotated[int, Par("Requests of a group", low=2, high=16, free=True)] = 8,
    writers: Annotated[int, Par("Requests that write 200 to 300 tokens", low=2, high=40, free=True)] = 12,
    pool_tokens: Annotated[int, Par("KV pool", "tokens", low=1000, high=20_000, step=200, free=True)] = 3600,
    token_us: Annotated[
        float, Par("Prompt token", "µs", low=1.0, high=1000.0, log=True, free=True, status="measured", source=_HERE)
    ] = 23.0,
    pair_us: Annotated[
        float,
        Par("Attention, of a thousand pairs of prompt positions", "µs", low=0.0, high=1000.0, free=True,
            status="measured", source=_HERE),
    ] = 23.0,
    prompts_us: Annotated[
        float,
        Par("Prompts, of a step that has any", "µs", low=0.0, high=20_000.0, free=True, status="measured",
            source=_HERE),
    ] = 950.0,
    decode_us: Annotated[
        float,
        Par("Decoding, of each request", "µs", low=1.0, high=5000.0, log=True, free=True, status="measured",
            source=_HERE),
    ] = 250.0,
    read_us: Annotated[
        float,
        Par("Decoding, of each KV token", "µs", low=0.01, high=100.0, log=True, free=True, status="measured",
            source=_HERE),
    ] = 0.31,
    decodes_us: Annotated[
        float,
        Par("Decoding, of a step that has any", "µs", low=0.0, high=20_000.0, free=True, status="measured",
            source=_HERE),
    ] = 720.0,
    memory_slope: Annotated[
        float,
        Par("a: memory time added where compute is longer", low=0.0, high=1.0, step=0.01, free=True,
            status="measured", source=_HERE),
    ] = 0.1,
    compute_slope: Annotated[
        float,
        Par("b: compute time added where memory is longer", low=0.0, high=1.0, step=0.01, free=True,
            status="measured", source=_HERE),
    ] = 0.39,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Seconds of one job by order, with the two parts of a step one after the other and beside each other.

    One part of a step computes prompts, the other decodes and reads the cache; each has one thread, on a processor of
    its own where there are two. So on a machine without a GPU what overlaps is two cores that share caches, memory and
    Python's lock, not the units of one accelerator. A real run measures steps of its own choice with both parts alone
    and beside each other, fits costs to them and slopes to every second of them, and foretells the job from these;
    every step of the job is the quickest of some runs of equal work. What is planned (which order, which batch) rests
    on the costs that are given here.
    """
    mixture = Mixture(groups, members, writers)
    if context.mode == "quick":
        mixture = Mixture(*map(min, mixture, SMALL))
    micros = (token_us, pair_us / 1000, prompts_us, decode_us, read_us, decodes_us)
    parts = PartCosts(*(value * 1e-6 for value in micros))
    job = small_job(mixture, _shape().vocabulary, context.random("job"))
    costs = costs_from(parts, job, pool_tokens)
    plans = {name: ordered(job, name, costs, context.random("order")) for name in NAMES}
    runs = {
        name: serve(job.pool, job.tree, job.estimates, order, costs, scan, batch=BATCH)
        for name, (order, scan) in plans.items()
    }
    if context.backend == "torch":
        steps = {
            name: steps_of(job.pool, job.tree, job.estimates, order, costs, scan, batch=BATCH)[0]
            for name, (order, scan) in plans.items()
        }
        return _real(context, job, steps, {name: run.log for name, run in runs.items()})
    slopes = {ALONE: (1.0, 1.0), BESIDE: (memory_slope, compute_slope)}
    rows = [
        {"order": NAMES[name], "engine": engine, "computed_tokens": int(run.computed.sum()),
         "seconds": run_seconds(run.log, parts, *pair)}
        for engine, pair in slopes.items()
        for name, run in runs.items()
    ]  # fmt: skip
    return _tables(pl.DataFrame(rows))


def _shape() -> Any:
    from workbench.executor.transformer.shape import Shape

    return Shape(**SHAPE)


def _tables(orders: pl.DataFrame, **more: pl.DataFrame) -> dict[str, pl.DataFrame]:
    down = orders.filter(pl.col("order") == NAMES[DFS]).select("engine", dfs_s="seconds")
    table = orders.join(down, on="engine", how="left", maintain_order="left")
    table = table.with_columns(over_dfs=pl.col("dfs_s") / pl.col("seconds")).drop("dfs_s")
    known = [
        (f"{what}, {row['engine']}", row["order"], row[name], unit)
        for row in table.iter_rows(named=True)
        for what, name, unit in (("time of the job", "seconds", "s"), ("time down the tree over it", "over_dfs", "1"))
    ]
    return {"orders": table, **more, "headline": headline(known)}


def _real(
    context: Context, job: SmallJob, steps: Mapping[str, tuple[Step, ...]], logs: Mapping[str, np.ndarray]
) -> dict[str, pl.DataFrame]:
    from workbench.blending.real.job import calibrate, run_job
    from workbench.blending.real.serving import Model
    from workbench.executor.processes import Pool

    readings, rounds = ROUNDS[context.mode]
    model = Model(_shape(), context.seed)
    with Pool(1) as pool:
        context.tell("real run: what computing and reading memory take, alone and beside each other")
        found = calibrate(model, readings, pool=pool, stop=context.give_way)
        context.tell("real run: the job in four orders")
        served = run_job(model, job, steps, rounds, pool=pool, stop=context.give_way)
        small = small_job(SMALL, model.shape.vocabulary, context.random("small"))
        costs = costs_from(found.costs, small, 1400)
        few = {}
        for name in NAMES:
            order, scan = ordered(small, name, costs, context.random("order"))
            few[name] = steps_of(small.pool, small.tree, small.estimates, order, costs, scan, batch=BATCH)[0]
        context.tell("real run: a smaller job, bit for bit")
        exact = run_job(model._replace(arithmetic="invariant"), small, few, 1, pool=pool, stop=context.give_way)
    _cite(context, found, served)
    work = {OPERATIONS: found.operations, PARTS: found.parts}
    slopes = [
        {"work": name, "memory_slope": one.fit.memory_slope, "compute_slope": one.fit.compute_slope,
         "error": one.fit.error, "hidden": one.fit.hidden}
        for name, one in work.items()
    ]  # fmt: skip
    pairs = [
        {"work": name, "compute_s": compute, "memory_s": memory, "together_s": both, "fitted_s": fitted}
        for name, one in work.items()
        for (compute, memory, both), fitted in zip(one.seconds.tolist(), one.fit.fitted_s.tolist(), strict=True)
    ]
    own = {ALONE: (1.0, 1.0), BESIDE: (found.parts.fit.memory_slope, found.parts.fit.compute_slope)}
    rows, predicted = [], []
    for place, (engine, pair) in enumerate(own.items()):
        for name, run in served.orders.items():
            about = {"order": NAMES[name], "engine": engine}
            rows.append({**about, "computed_tokens": run.computed, "seconds": float(run.step_s[place].sum())})
            predicted.append({**about, "seconds": run_seconds(logs[name], found.costs, *pair)})
    identity = pl.concat([served.identity, exact.identity]).with_columns(pl.col("order").replace(NAMES))
    return _tables(
        pl.DataFrame(rows), predicted=pl.DataFrame(predicted), slopes=pl.DataFrame(slopes), pairs=pl.DataFrame(pairs),
        identity=identity,
    )  # fmt: skip


def _cite(context: Context, found: Any, served: Any) -> None:
    text = "fitted to steps measured apart from the job"
    for name, seconds in found.costs._asdict().items():
        context.cite(f"part of a step: {name}", seconds, "s", "measured", text)
    context.cite("slope a of a step's parts", found.parts.fit.memory_slope, "1", "measured", text)
    context.cite("slope b of a step's parts", found.parts.fit.compute_slope, "1", "measured", text)
    steps = [(run.handing_s, run.step_s[1]) for run in served.orders.values()]
    share = max(handing_s * len(step_s) / float(step_s.sum()) for handing_s, step_s in steps)
    context.cite("overhead of the real job", share, "1", "measured", "share of a step that belongs to neither part")
