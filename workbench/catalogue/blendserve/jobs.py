"""Pools, plans and runs that several experiments ask for: made once, kept for the next one."""

import functools
from typing import NamedTuple

import numpy as np

from workbench.blending.model.bounds import Bounds, bounds
from workbench.blending.model.costs import Costs, Engine, costs_of
from workbench.blending.model.density import Density
from workbench.blending.model.estimating import SUBTREE, Estimates, estimate
from workbench.blending.model.ordering import BALANCE, DFS, GROUPS, LONGEST, blended, order_of, plain
from workbench.blending.model.running import DENSE_BATCH, Run, serve
from workbench.blending.model.sources import AnySource, LengthModel, length_models, source_named
from workbench.blending.model.synthesis import HEAVY, SHARER, Mix, mix
from workbench.blending.model.transforming import KEPT, OUTLIER, Transformed, transform
from workbench.blending.model.tree import Tree, sharing, tree_of
from workbench.blending.policy import SEQUENTIAL, SLOPES
from workbench.catalogue.blendserve.parameters import FEEDBACK, MEASURED, OVERLAPS, PRINTED, REACHED
from workbench.catalogue.context import Context
from workbench.errors import UserError

TRACES = {"Trace#1": (1.4, 0.35), "Trace#2": (0.9, 0.35), "Trace#3": (1.4, 0.05), "Trace#4": (0.9, 0.05)}
"""Density and sharing ratio of the four traces: ASPLOS'26 paper Table 2."""
POOL_BYTES = 60e9
"""KV memory of one A100 beside Llama-3-8B: ASPLOS'26 paper Fig 6."""

NF_DFS, NF_BALANCE, VLLM, BLEND = "NanoFlow-DFS", "NanoFlow-Balance", "vLLM-DFS", "BlendServe"
PREFIX_GROUPS, LONGEST_FIRST, OPTIMAL = "prefix groups", "longest first", "Optimal"
_ORDERS = {NF_DFS: DFS, VLLM: DFS, NF_BALANCE: BALANCE, PREFIX_GROUPS: GROUPS, LONGEST_FIRST: LONGEST}


class Tuning(NamedTuple):
    """What of the sources is changed; None for what they have.

    Attributes:
        spread: how many times as much outputs of the compute source vary around their mean.
        groups, shared: of MMLU, how many, and the tokens that each shares.
        video: mean output tokens of OpenVid.
    """

    spread: float | None = None
    groups: int | None = None
    shared: int | None = None
    video: int | None = None


class Setup(NamedTuple):
    """What a pool is made of: costs at the data sheet's rates, sources, size, seed.

    Attributes:
        sharing: None for no MMLU. main_shared: -1 for the compute source's own prefix. tuning: of the sources.
    """

    costs: Costs
    main: str
    density: float
    sharing: float | None
    requests: int
    seed: int
    main_shared: int = -1
    tuning: Tuning = Tuning()


class Plan(NamedTuple):
    """What is known of the outputs, and how the tree is transformed."""

    sampled: float = 0.01
    way: str = SUBTREE
    known: bool = True
    split: str = OUTLIER
    kept: float = KEPT
    threshold: float | None = None


USUAL = Plan()


class Made(NamedTuple):
    """A mix with its prefix tree and its largest sharing ratio."""

    mix: Mix
    tree: Tree
    sharing: float


def random_of(seed: int, stream: str) -> np.random.Generator:
    """The generator of a named stream, as a context gives it."""
    return Context("", seed=seed).random(stream)


@functools.lru_cache(maxsize=8)
def made(setup: Setup) -> Made:
    """The pool of a set-up."""
    shared = None if setup.main_shared < 0 else setup.main_shared
    main, sharer, heavy = _tuned(setup.main, setup.tuning)
    found = mix(
        main, setup.density, setup.sharing, setup.requests, setup.costs, random_of(setup.seed, "lengths"),
        sharer=sharer, heavy=heavy, main_shared=shared,
    )  # fmt: skip
    tree = tree_of(found.pool)
    return Made(found, tree, sharing(found.pool, tree))


def _tuned(main: str, tuning: Tuning) -> tuple[AnySource, LengthModel, LengthModel]:
    """The compute source, the sharer and the heavy source, changed as asked."""
    models, source = length_models(), source_named(main)
    sharer, heavy = models[SHARER], models[HEAVY]
    if tuning.spread is not None and tuning.spread != 1.0:
        if not isinstance(source, LengthModel):
            raise UserError(f"Lengths of the trace {source.name} are as they are; leave their spread at 1.")
        source = source.spread(tuning.spread)
    if tuning.groups is not None:
        sharer = sharer.grouped(tuning.groups)
    if tuning.shared is not None:
        sharer = sharer.sharing(tuning.shared)
    return source, sharer, heavy if tuning.video is None else heavy.lasting(tuning.video)


@functools.lru_cache(maxsize=8)
def planned(setup: Setup, plan: Plan) -> tuple[Estimates, Transformed]:
    """Estimates and transformed order of a pool."""
    pool, tree = made(setup).mix.pool, made(setup).tree
    known = estimate(pool, tree, plan.way, plan.sampled, random_of(setup.seed, "sample"), known=plan.known)
    about = Density(length_biased=True)
    moved = transform(
        pool, tree, known, setup.costs, plan.split, about, kept=plan.kept, threshold=plan.threshold
    )  # fmt: skip
    return known, moved


def served(
    setup: Setup, system: str, plan: Plan = USUAL, scan: str = FEEDBACK, batch: int = DENSE_BATCH, retain: bool = False
) -> Run:
    """The run of one system over a pool; its steps have no length yet. Only BlendServe scans from both ends."""
    return _served(setup, system, plan, scan if system == BLEND else FEEDBACK, batch, retain)


@functools.lru_cache(maxsize=24)
def _served(setup: Setup, system: str, plan: Plan, scan: str, batch: int, retain: bool) -> Run:
    pool, tree = made(setup).mix.pool, made(setup).tree
    known, moved = planned(setup, plan)
    if system == BLEND:
        order = blended(moved, pool, tree, known, setup.costs, Density(length_biased=scan != PRINTED))
        way = "feedback" if scan == FEEDBACK else "open"
    else:
        order, way = plain(order_of(pool, tree, known, _ORDERS[system], random_of(setup.seed, "order"))), "single"
    return serve(pool, tree, known, order, setup.costs, way, batch=batch, retain=retain)


class Rates(NamedTuple):
    """How an engine turns steps into seconds: shares of peak rates, slopes of overlap."""

    compute_share: float = REACHED.compute_share
    memory_share: float = REACHED.memory_share
    memory_slope: float = SLOPES["interference"][0]
    compute_slope: float = SLOPES["interference"][1]

    def engine(self, costs: Costs, system: str = BLEND) -> Engine:
        """The engine of a system; vLLM and SGLang do one thing after the other."""
        slopes = SLOPES[SEQUENTIAL] if system == VLLM else (self.memory_slope, self.compute_slope)
        return Engine(
            costs=costs.at(self.compute_share, self.memory_share), memory_slope=slopes[0], compute_slope=slopes[1],
            network_hidden=system != VLLM,
        )  # fmt: skip


def rates_of(context: Context, accelerator: str, overlap: str = MEASURED) -> Rates:
    """Rates with a named way of overlapping; interference is the accelerator's own where that was measured."""
    slopes = OVERLAPS[overlap]
    return own_rates(context, accelerator, Rates(memory_slope=slopes[0], compute_slope=slopes[1]))


def own_rates(context: Context, accelerator: str, rates: Rates) -> Rates:
    """Rates with what an accelerator's own profile says in place of the usual values, entered into the ledger.

    Slopes that were measured on it take the place of NanoFlow's. Where there is no data sheet, rates of the profile are
    those that kernels reach already, and the usual shares of peak rates fall away.
    """
    chip = context.accelerator(accelerator)
    a, b = chip.achievable.overlap_memory_slope, chip.achievable.overlap_compute_slope
    if a is not None and b is not None and (rates.memory_slope, rates.compute_slope) == OVERLAPS[MEASURED]:
        context.cite(f"{chip.name}: slope a of overlap", a)
        context.cite(f"{chip.name}: slope b of overlap", b)
        rates = rates._replace(memory_slope=float(a), compute_slope=float(b))
    usual = Rates()
    if chip.nominal.flops_per_s is None and rates.compute_share == usual.compute_share:
        rates = rates._replace(compute_share=1.0)
    if chip.nominal.memory_bytes_per_s is None and rates.memory_share == usual.memory_share:
        rates = rates._replace(memory_share=1.0)
    return rates


def limits(setup: Setup, rates: Rates) -> Bounds:
    """The optimum and the practical optimum of a pool."""
    found = made(setup)
    return bounds(found.mix.pool, found.tree, rates.engine(setup.costs))


def costs_for(context: Context, model: str, accelerator: str, tp: int = 1) -> Costs:
    """Costs at the data sheet's rates, with their sources entered; Llama-3-8B on one A100 has the paper's pool."""
    shape, chip = context.model(model), context.accelerator(accelerator)
    stated = (shape.name, chip.name, tp) == ("llama-3-8b", "a100-80gb-sxm", 1)
    costs = costs_of(shape, chip, tp, POOL_BYTES if stated else None)
    context.cite(f"{chip.name} compute, each", chip.speed("flops_per_s", "nominal"))
    context.cite(f"{chip.name} memory, each", chip.speed("memory_bytes_per_s", "nominal"))
    source = "ASPLOS'26 paper Fig 6" if stated else "memory less weights and 4 GB of buffers each, as in Fig 6"
    context.cite("KV pool", costs.pool_bytes, "bytes", "published" if stated else "inferred", source)
    context.cite("dense batch", DENSE_BATCH, "tokens", "published", "NanoFlow's set-up for Llama-3-8B")
    return costs


def cite_sources(context: Context, main: str) -> None:
    """Enter where the lengths come from, and the traces that were read."""
    for name in (main, SHARER, HEAVY):
        source = source_named(name)
        context.traces.extend(source.traces)
        for row in source.sources():
            context.cite(row.quantity, row.value, row.unit, row.status, row.source)


def size_of(context: Context, requests: str, quick: int) -> int:
    """Requests of a pool; fewer in quick mode."""
    size = int(requests.replace(",", ""))
    return min(size, quick) if context.mode == "quick" else size
