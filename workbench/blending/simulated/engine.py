"""An engine that serves an offline pool, as a SimPy process: one event at the end of every step.

What a step does, `model.planning` says; here it gets its time.
"""

from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.layout import Order
from workbench.blending.model.costs import Costs, Engine
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.planning import Planner
from workbench.blending.model.prompts import Pool
from workbench.blending.model.running import CAP, DENSE_BATCH, PATIENCE, Run
from workbench.blending.model.tree import Tree
from workbench.blending.policy import overlapped_s, tiled_up, with_network_s
from workbench.queueing.simulated.clock import Clock


class Simulated(NamedTuple):
    """A simulated run: what became of the order, and when each request was done, in the order of `run.request`."""

    run: Run
    finish_s: np.ndarray


def _serve(planner: Planner, clock: Clock, engine: Engine):
    """The process: steps, one after the other, until all are done."""
    costs = engine.costs
    weights_s = costs.weight_bytes / costs.memory_bytes_per_s if engine.weight_floor else 0.0
    pair_s = costs.pair_flops / costs.flops_per_s if engine.prefill_attention else 0.0
    step = 0
    while not planner.over:
        planned = planner.plan(step)
        computed = tiled_up(planned.prompt_tokens + len(planned.decodes))
        compute_s = max(computed * costs.token_s, weights_s) + planned.pairs * pair_s
        both_s = overlapped_s(compute_s, planned.read * costs.kv_token_s, engine.memory_slope, engine.compute_slope)
        network_s = computed * costs.network_s_per_token
        yield clock.at(clock.now + with_network_s(both_s, network_s, engine.network_hidden), 0)
        planner.end(step, planned, clock.now)
        step += 1


def simulate_serving(
    pool: Pool, tree: Tree, estimates: Estimates, order: Order, costs: Costs, engine: Engine, scan: str = "single",
    *, batch: int = DENSE_BATCH, retain: bool = False, cap: float = CAP, patience: float = PATIENCE,
) -> Simulated:  # fmt: skip
    """The run of `model.running.serve`, by simulation, with the engine's seconds on the clock."""
    planner = Planner(pool, tree, estimates, order, costs, (scan, batch, retain, cap, patience))
    clock = Clock()
    clock.process(_serve(planner, clock, engine))
    clock.run()
    run = planner.run()
    return Simulated(run, np.array([planner.done[who][2] for who in run.request.tolist()]))
