"""Serve a pool in some order, in compiled code."""

from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.layout import (
    BY_CAP,
    BY_PEAK,
    FEEDBACK,
    OPEN,
    SINGLE,
    TOKENS,
    Jobs,
    Nodes,
    Order,
    Rules,
)
from workbench.blending.kernels.state import ADMITTED, COMPUTED, FINISHED
from workbench.blending.kernels.stepping import run_steps
from workbench.blending.model.costs import Costs, Engine, StepSeconds, seconds_of
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.prompts import Pool
from workbench.blending.model.tree import Tree
from workbench.blending.policy import TILE
from workbench.errors import InputError, UnknownName
from workbench.records import not_negative, positive

SCANS = {"single": SINGLE, "open": OPEN, "feedback": FEEDBACK}
DENSE_BATCH = 1024
"""Dense batch that NanoFlow ships for Llama-3-8B (repository efeslab/Nanoflow, pipeline/config_all)."""
CAP = 0.97
"""Share of the pool up to which an open-loop scan admits."""
PATIENCE = 4.0
"""A request of the left end counts to the right one after so many times its expected output."""


class Run(NamedTuple):
    """What became of an order.

    Attributes:
        log: int64[k, 5], a row a step: tokens computed, KV tokens read, growth of squared prompt positions, KV tokens
            held, requests that decode.
        request: int64[n], who was served.
        admitted, finished: int64[n], steps of admission and of the last token, in the order of `request`.
        computed: int64[n], prompt tokens that were computed; the others were prefix hits.
        swaps: times somebody was swapped out.
    """

    log: np.ndarray
    request: np.ndarray
    admitted: np.ndarray
    finished: np.ndarray
    computed: np.ndarray
    swaps: int

    @property
    def steps(self) -> int:
        """How many steps the run took."""
        return len(self.log)

    def sharing(self, pool: Pool) -> float:
        """Share of the served tokens, prompt and output, that prefix hits saved."""
        prompt, output = pool.prompt[self.request].sum(), pool.output[self.request].sum()
        return 1.0 - float(self.log[:, TOKENS].sum()) / float(prompt + output)

    def hit_rate(self, pool: Pool) -> float:
        """Share of the served prompt tokens that were prefix hits."""
        return 1.0 - float(self.computed.sum()) / float(pool.prompt[self.request].sum())

    def seconds(self, engine: Engine) -> StepSeconds:
        """How long each step takes on an engine."""
        return seconds_of(self.log, engine)

    def finish_s(self, engine: Engine) -> np.ndarray:
        """When each request is done, in the order of `request`."""
        return np.cumsum(self.seconds(engine).step_s)[self.finished]

    def throughput(self, pool: Pool, engine: Engine) -> float:
        """Prompt and output tokens, hits among them, over the time of all steps, tokens/s."""
        prompt, output = pool.prompt[self.request].sum(), pool.output[self.request].sum()
        return float(prompt + output) / float(np.cumsum(self.seconds(engine).step_s)[-1])


def serve(
    pool: Pool, tree: Tree, estimates: Estimates, order: Order, costs: Costs, scan: str = "single",
    *, batch: int = DENSE_BATCH, retain: bool = False, cap: float = CAP, patience: float = PATIENCE,
) -> Run:  # fmt: skip
    """Serve the requests of an order in compiled code.

    Parameters:
        pool, tree, estimates: the requests and what is known of them.
        order: see `ordering`.
        costs: give the pool's tokens and the balance of arithmetic and reading.
        scan: "single" (from the front, dense batch always full), "open" (from both ends, the paper's Algorithm 3, up to
            the cap), "feedback" (from both ends, the dense batch follows the KV reads).
        batch: the dense batch, or its largest size, in tokens.
        retain: whether prefixes that nobody uses stay in the pool until their room is needed.
        cap: share of the pool up to which "open" admits; the others admit by predicted peak.
        patience: times the expected output after which a request of the left end counts to the right one.

    Raises:
        InputError: a request that the pool cannot hold, that does not exist or is named twice; a batch that is no
            multiple of the tile; a cap or a patience that cannot be.
    """
    return result_of(
        order, *run_steps(*lowered(pool, tree, estimates, order, costs, scan, batch, retain, cap, patience))
    )


def lowered(
    pool: Pool, tree: Tree, estimates: Estimates, order: Order, costs: Costs, scan: str, batch: int, retain: bool,
    cap: float, patience: float,
) -> tuple[Jobs, Nodes, Order, Rules]:  # fmt: skip
    """A run as arrays and numbers, checked; see `serve`."""
    if scan not in SCANS:
        raise UnknownName("scan", scan, SCANS)
    if isinstance(batch, bool) or not isinstance(batch, int) or batch < TILE or batch % TILE:
        raise InputError(f"is {batch!r}", f"give a multiple of {TILE} tokens", field="batch")
    if positive(cap, "cap") > 1:
        raise InputError(f"is {cap:g}", "give a share of the pool above 0 and at most 1", field="cap")
    not_negative(patience, "patience")
    _check_served(order.request, pool.size)
    capacity = costs.pool_tokens
    whole = pool.prompt + pool.output
    if whole.max() > capacity:
        which = int(whole.argmax())
        raise InputError(
            f"request {which} needs {whole[which]} KV tokens and the pool holds {capacity}",
            "use a larger pool, or leave it out",
        )
    expected = np.maximum(np.ceil(estimates.output), 1).astype(np.int64)
    parent = tree.parent[tree.leaf]
    own = tree.tokens[tree.leaf]
    served = order.request
    compute, reads = _left(pool, tree, estimates, served)
    density = compute * costs.balance / reads.sum()
    heavy = float(reads[order.density[order.unit] < density].sum() / reads.sum())
    rules = Rules(
        scan=SCANS[scan], batch=batch, capacity=capacity, admission=BY_CAP if scan == "open" else BY_PEAK,
        cap=int(cap * capacity), retain=bool(retain), density=density, heavy_share=heavy,
        compute_left=compute, kv_left=float(reads.sum()), patience=0.0 if scan == "single" else float(patience),
    )  # fmt: skip
    return Jobs(pool.prompt, pool.output, expected, parent, own), Nodes(tree.parent, tree.tokens), order, rules


def _check_served(served: np.ndarray, requests: int) -> None:
    """The loop would write beside its arrays for a request that does not exist, and serve one twice."""
    if not served.size:
        raise InputError("is empty", "serve at least one request", field="order")
    if served.min() < 0 or served.max() >= requests:
        wrong = int(served[(served < 0) | (served >= requests)][0])
        raise InputError(f"names request {wrong} of {requests}", f"give 0 to {requests - 1}", field="order")
    times = np.bincount(served)
    if times.max() > 1:
        raise InputError(f"names request {int(times.argmax())} twice", "serve each once", field="order")


def _left(pool: Pool, tree: Tree, estimates: Estimates, served: np.ndarray) -> tuple[float, np.ndarray]:
    """Tokens that the served requests compute, every prefix once, and KV tokens that each reads, estimated."""
    used = np.zeros(tree.parent.size, bool)
    used[tree.parent[tree.leaf[served]]] = True
    waiting = np.flatnonzero(used)
    while waiting.size:
        above = tree.parent[waiting]
        waiting = np.unique(above[above >= 0])
        waiting = waiting[~used[waiting]]
        used[waiting] = True
    own = pool.prompt[served] - tree.inherited[served]
    output = estimates.output[served]
    compute = float(tree.tokens[used].sum() + own.sum() + output.sum())
    return compute, pool.prompt[served] * output + estimates.square[served] / 2


def result_of(order: Order, log: np.ndarray, rows: np.ndarray, swaps: int) -> Run:
    """A run from what the step loop returns."""
    rows = rows[order.request]
    return Run(log, order.request, rows[:, ADMITTED], rows[:, FINISHED], rows[:, COMPUTED], int(swaps))
