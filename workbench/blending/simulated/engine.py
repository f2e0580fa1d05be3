"""An engine that serves an offline pool, as a SimPy process: one event at the end of every step.

It follows the prose of `kernels.stepping` and calls the same policy, over plain objects instead of arrays.
"""

import math
from collections import deque
from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.layout import BY_CAP, FEEDBACK, LEFT, OPEN, RIGHT, SINGLE, Order
from workbench.blending.model.costs import Costs, Engine
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.prompts import Pool
from workbench.blending.model.running import CAP, DENSE_BATCH, PATIENCE, Run, lowered
from workbench.blending.model.tree import Tree
from workbench.blending.policy import (
    TILE,
    balanced_batch,
    in_flight,
    lasting_split,
    memory_split,
    overlapped_s,
    predicted_peak,
    prefill_tokens_per_step,
    tiled_up,
    with_network_s,
)
from workbench.blending.simulated.cache import Prefixes
from workbench.queueing.simulated.clock import Clock


class Simulated(NamedTuple):
    """A simulated run: what became of the order, and when each request was done, in the order of `run.request`."""

    run: Run
    finish_s: np.ndarray


class _Flight:
    """A request in flight: its side, tokens computed and made, and when it is expected to be done."""

    def __init__(self, who: int, place: int, side: int, step: int, own: int, shared: int, expected: int):
        self.who, self.place, self.side, self.admitted = who, place, side, step
        self.own, self.computed, self.todo = own, own + shared, own + shared
        self.made, self.finish, self.since = 0, step + expected, step - own


class _Server:
    def __init__(self, pool: Pool, tree: Tree, estimates: Estimates, order: Order, costs: Costs, options: tuple):
        jobs, nodes, self.order, self.rules = lowered(pool, tree, estimates, order, costs, *options)
        self.prompt, self.output = jobs.prompt.tolist(), jobs.output.tolist()
        self.expected, self.own, self.node = jobs.expected.tolist(), jobs.own.tolist(), jobs.node.tolist()
        self.prefixes = Prefixes(nodes.parent.tolist(), nodes.tokens.tolist())
        self.waiting = deque(enumerate(order.request.tolist()))
        self.partial: list[_Flight | None] = [None, None]
        self.fresh: list[_Flight] = []
        self.decoding: list[_Flight] = []  # by the step they began
        self.swapped: deque[_Flight] = deque()
        self.credit, self.budget, self.share, self.units = [0.0, 0.0], [0.0, 0.0], [0, 0], (-1, -1)
        self.compute_left, self.kv_left = self.rules.compute_left, self.rules.kv_left
        self.log: list[tuple[int, int, int, int, int]] = []
        self.done: dict[int, tuple[_Flight, int, float]] = {}
        self.swaps = 0

    # What is held, and who fits.

    @property
    def private(self) -> int:
        """Tokens that nobody shares: of prompts whole from admission on."""
        return sum(flight.own + flight.made for flight in self._flying())

    def _flying(self) -> list[_Flight]:
        begun = [flight for flight in self.partial if flight is not None]
        return [*self.decoding, *self.fresh, *begun]

    def _peak(self, side: int, step: int, finish: int = -1, since: int = 0) -> int:
        rows = [(flight.finish, flight.since) for flight in self._flying() if flight.side == side]
        table = np.array(sorted(rows, key=lambda row: -row[0]), dtype=np.int64).reshape(-1, 2)
        return int(predicted_peak(table, len(rows), step - 1, finish, since))

    def _fits(self, side: int, step: int, held: int, shared: int, finish: int, since: int) -> bool:
        if not self._flying():
            return True
        used = self.private + self.prefixes.used + held + shared
        if used + len(self.decoding) > self.rules.capacity:
            return False
        if self.rules.admission == BY_CAP:
            return used <= self.rules.cap
        alone = self._peak(side, step, finish, since)
        if side == RIGHT and alone > self.share[RIGHT]:
            return False
        return alone + self._peak(1 - side, step) + shared + self.prefixes.used <= self.rules.capacity

    def _free(self) -> None:
        while self.prefixes.idle and self.private + self.prefixes.held + len(self.decoding) > self.rules.capacity:
            self.prefixes.drop()

    # The parts of a step.

    def _make_room(self, step: int) -> None:
        self._free()
        while self.decoding and self.private + self.prefixes.held + len(self.decoding) > self.rules.capacity:
            flight = self.decoding.pop()
            self.prefixes.leave(self.node[flight.who])
            self._free()
            self.swapped.append(flight)
            self.swaps += 1

    def _bring_back(self, step: int) -> None:
        while self.swapped:
            flight = self.swapped[0]
            held = flight.own + flight.made
            finish = step + max(self.expected[flight.who] - flight.made, 1) - 1
            unused = self.prefixes.unused(self.node[flight.who])
            if not self._fits(flight.side, step, held + 1, unused, finish, step - 1 - held):
                return
            self.prefixes.use(self.node[flight.who])
            flight.finish, flight.since = finish, step - 1 - held
            self.decoding.append(self.swapped.popleft())
            self._free()

    def _split(self) -> None:
        order = self.order
        units = (int(order.unit[self.waiting[0][0]]), int(order.unit[self.waiting[-1][0]]))
        if units == self.units:
            return
        self.units = units
        left, right = (order.density[unit] for unit in units)
        if self.rules.scan == FEEDBACK:
            lasting = lasting_split(float(self.rules.capacity), self.rules.heavy_share, left, self.rules.density)
            self.share = [0, int(lasting)]
            return
        shares = memory_split(float(self.rules.capacity), left, right, self.rules.density)
        self.share = [int(share) for share in shares]
        self.budget = [
            prefill_tokens_per_step(in_flight(share, order.held[unit]), order.prompt[unit], order.output[unit])
            for share, unit in zip(shares, units, strict=True)
        ]

    def _admit(self, side: int, step: int) -> _Flight | None:
        place, who = self.waiting[0 if side == LEFT else -1]
        missing, unused = self.prefixes.missing(self.node[who]), self.prefixes.unused(self.node[who])
        flight = _Flight(who, place, side, step, self.own[who], missing, self.expected[who])
        if not self._fits(side, step, flight.own, unused, flight.finish, flight.since):
            return None
        self.prefixes.use(self.node[who])
        self.partial[side] = flight
        self._free()
        if side == LEFT:
            self.waiting.popleft()
        else:
            self.waiting.pop()
        return flight

    def _prompts_of(self, side: int, step: int, tokens: int, on_credit: bool) -> tuple[int, int]:
        used, pairs = 0, 0
        while used < tokens and not (on_credit and self.credit[side] <= 0.0):
            flight = self.partial[side]
            if flight is None:
                if not self.waiting or self.swapped:
                    break
                if self.rules.scan != SINGLE:
                    self._split()
                flight = self._admit(side, step)
                if flight is None:
                    break
            chunk = min(flight.todo, tokens - used)
            at = self.prompt[flight.who] - flight.todo
            pairs += (at + chunk) ** 2 - at**2
            used += chunk
            flight.todo -= chunk
            self.credit[side] -= chunk
            if not flight.todo:
                self.partial[side] = None
                self.fresh.append(flight)
        return used, pairs

    def _batch(self, read: int) -> int:
        """The dense batch of this step."""
        if self.rules.scan != FEEDBACK or not self.waiting:
            return self.rules.batch
        density, unit = self.order.density, self.order.unit
        flying = [*self._flying(), *self.swapped]
        heavy = any(density[unit[flight.place]] < self.rules.density for flight in flying)
        if heavy and density[unit[self.waiting[0][0]]] > self.rules.density:
            return balanced_batch(float(read), self.compute_left, self.kv_left, self.rules.batch)
        return self.rules.batch

    def _prompts(self, step: int, decodes: int, read: int) -> tuple[int, int]:
        if self.rules.scan == SINGLE:
            return self._prompts_of(LEFT, step, max(self.rules.batch - decodes, 0), False)
        if self.waiting:
            self._split()
        batch, tokens, pairs = self._batch(read), 0, 0
        credited = self.rules.scan == OPEN
        for side in (RIGHT, LEFT):
            if credited:
                most = max(self.budget[side], float(TILE))
                self.credit[side] = min(self.credit[side] + self.budget[side], most)
            more, grown = self._prompts_of(side, step, max(batch - decodes - tokens, 0), credited)
            tokens, pairs = tokens + more, pairs + grown
        if credited:
            rest = min(tiled_up(decodes + tokens), self.rules.batch) - decodes - tokens
            more, grown = self._prompts_of(LEFT, step, rest, False)
            tokens, pairs = tokens + more, pairs + grown
        return tokens, pairs

    def _end(self, step: int, now_s: float) -> None:
        late = []
        for flight in sorted(self.decoding, key=lambda flight: flight.who):
            flight.made += 1
            if flight.made == self.output[flight.who]:
                self.decoding.remove(flight)
                self.prefixes.leave(self.node[flight.who])
                self.done[flight.who] = (flight, step, now_s)
            elif flight.side == LEFT and self.rules.patience > 0.0:
                patience = max(math.ceil(self.rules.patience * self.expected[flight.who]), 1)
                if flight.made >= patience:
                    late.append(flight)
        for flight in late:
            flight.side = RIGHT
        self.decoding += self.fresh
        self.fresh = []

    def serve(self, clock: Clock, engine: Engine):
        """The process: steps, one after the other, until all are done."""
        costs = engine.costs
        weights_s = costs.weight_bytes / costs.memory_bytes_per_s if engine.weight_floor else 0.0
        pair_s = costs.pair_flops / costs.flops_per_s if engine.prefill_attention else 0.0
        step = 0
        while len(self.done) < self.order.request.size:
            self._make_room(step)
            self._bring_back(step)
            decodes = len(self.decoding)
            read = sum(self.prompt[flight.who] + flight.made + 1 for flight in self.decoding)
            tokens, pairs = self._prompts(step, decodes, read)
            while not self.rules.retain and self.prefixes.idle:
                self.prefixes.drop()
            computed = tiled_up(decodes + tokens)
            compute_s = max(computed * costs.token_s, weights_s) + pairs * pair_s
            both_s = overlapped_s(compute_s, read * costs.kv_token_s, engine.memory_slope, engine.compute_slope)
            network_s = computed * costs.network_s_per_token
            yield clock.at(clock.now + with_network_s(both_s, network_s, engine.network_hidden), 0)
            self._end(step, clock.now)
            self.log.append((decodes + tokens, read, pairs, self.private + self.prefixes.held, decodes))
            self.compute_left -= decodes + tokens
            self.kv_left -= read
            step += 1


def simulate_serving(
    pool: Pool, tree: Tree, estimates: Estimates, order: Order, costs: Costs, engine: Engine, scan: str = "single",
    *, batch: int = DENSE_BATCH, retain: bool = False, cap: float = CAP, patience: float = PATIENCE,
) -> Simulated:  # fmt: skip
    """The run of `model.running.serve`, by simulation, with the engine's seconds on the clock."""
    server = _Server(pool, tree, estimates, order, costs, (scan, batch, retain, cap, patience))
    clock = Clock()
    clock.process(server.serve(clock, engine))
    clock.run()
    rows = [server.done[who] for who in order.request.tolist()]
    admitted, finished, computed = (
        np.array(column, np.int64)
        for column in zip(*((flight.admitted, step, flight.computed) for flight, step, _ in rows), strict=True)
    )
    log = np.array(server.log, np.int64).reshape(-1, 5)
    run = Run(log, order.request, admitted, finished, computed, server.swaps)
    return Simulated(run, np.array([now_s for *_, now_s in rows]))
