"""A small offline job in several orders, for real: what each takes, whether its outputs are right, what overlaps."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.blending.model.fitting import PartCosts, SlopeFit, fit_parts, fit_slopes
from workbench.blending.model.small_jobs import SmallJob
from workbench.blending.model.steps import Step
from workbench.blending.real.overlap import Sample, operations, parts
from workbench.blending.real.serving import Job, Model
from workbench.blending.real.tasks import OrderRun, serve_orders
from workbench.errors import InputError
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.watching import StopWanted
from workbench.records import whole

LIMIT_S = 900.0
COUNTS = tuple((products, pieces) for products in (3, 6, 12) for pieces in (4, 8, 12, 16))
"""Products and pieces of the readings of bare operations: so that either may take longer."""
SAMPLES = tuple(
    Sample(tokens, behind, decodes, context)
    for decodes in (4, 8, 16)
    for tokens, behind, context in (
        (48, 128, 128), (96, 0, 224), (128, 128, 352), (112, 256, 160), (128, 256, 288), (80, 128, 384),
    )
)  # fmt: skip
"""Steps that are measured apart from any job, to learn what the parts of its steps take."""


class Overlap(NamedTuple):
    """What two kinds of work took alone and beside each other.

    Attributes:
        seconds: float64[n, 3], compute alone, memory alone, both. fit: the slopes.
    """

    seconds: np.ndarray
    fit: SlopeFit


class Calibrated(NamedTuple):
    """What this machine takes: bare operations, and the parts of a step."""

    operations: Overlap
    parts: Overlap
    costs: PartCosts


class JobRun(NamedTuple):
    """A job in several orders.

    Attributes:
        orders: by name. identity: `order, arithmetic, requests, tokens, difference, gap, distinct, fault` of what each
            order said, laid beside the model alone with each request; "" for no fault.
    """

    orders: dict[str, OrderRun]
    identity: pl.DataFrame


def calibrate(model: Model, rounds: int, *, pool: Pool | None = None, stop: StopWanted = None) -> Calibrated:
    """Measure what computing and reading memory take alone and beside each other, and fit it.

    Parameters:
        model: whose steps are measured.
        rounds: every reading is the quickest of so many.
        pool: a process of it measures; by default one is started and ended.
        stop: asked whether to give up.

    Errors: `MissingExtra` without torch; `RunFailed` when the process fails.
    """
    rounds = whole(rounds, "rounds", 1)
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(1))
        workers = stack.enter_context(pool.lease(1))
        workers[0].give(operations, COUNTS, rounds, model.device)
        bare = gather(workers, pool.beats, LIMIT_S, stop)[0]
        workers[0].give(parts, model, SAMPLES, rounds)
        found = gather(workers, pool.beats, LIMIT_S, stop)[0]
    tokens, pairs, decodes, read = (
        np.array([getattr(sample, name) for sample in SAMPLES]) for name in ("tokens", "pairs", "decodes", "read")
    )
    costs = fit_parts(tokens, pairs, found[:, 0], decodes, read, found[:, 1])
    return Calibrated(Overlap(bare, fit_slopes(*bare.T)), Overlap(found, fit_slopes(*found.T)), costs)


def run_job(
    model: Model, job: SmallJob, plans: Mapping[str, Sequence[Step]], rounds: int,
    *, pool: Pool | None = None, stop: StopWanted = None,
) -> JobRun:  # fmt: skip
    """Serve a job in several orders, each with the parts of a step one after the other and beside each other.

    Parameters:
        model: that serves it, every shared prefix once.
        job: the requests.
        plans: the steps of each order.
        rounds: every step's time is the quickest of so many runs; its work is the same in all of them.
        pool: a process of it serves; by default one is started and ended.
        stop: asked whether to give up.

    Errors: `MissingExtra` without torch; `InputError` for a prompt that ends inside another, which would make no token
        of its own; `RunFailed` when the process fails.
    """
    rounds = whole(rounds, "rounds", 1)
    if (job.pool.prompt == job.tree.inherited).any():
        raise InputError("is the beginning of another", "give each prompt a token of its own", field="prompt")
    jobs = {name: as_told(job, steps) for name, steps in plans.items()}
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(1))
        workers = stack.enter_context(pool.lease(1))
        workers[0].give(serve_orders, model, jobs, rounds)
        orders, identity = gather(workers, pool.beats, LIMIT_S, stop)[0]
    return JobRun(orders, pl.DataFrame(identity))


def as_told(job: SmallJob, steps: Sequence[Step]) -> Job:
    """A job and its steps as a worker is told them."""
    tree = job.tree
    node, own = tree.parent[tree.leaf].tolist(), (job.pool.prompt - tree.inherited).tolist()
    parents, tokens = tree.parent.tolist(), tree.tokens.tolist()
    return Job(job.prompts, job.answers, tuple(node), tuple(own), tuple(parents), tuple(tokens), tuple(steps))
