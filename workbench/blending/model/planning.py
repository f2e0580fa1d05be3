"""The steps of an offline engine over plain objects: what is computed, who decodes, what is dropped.

It follows the prose of `kernels.stepping` and calls the same policy. The simulated engine puts a clock to these steps,
the real one computes them.
"""

import math
from collections import deque

import numpy as np

from workbench.blending.kernels.layout import BY_CAP, FEEDBACK, LEFT, OPEN, RIGHT, SINGLE, Order
from workbench.blending.model.costs import Costs
from workbench.blending.model.estimating import Estimates
from workbench.blending.model.prompts import Pool
from workbench.blending.model.running import CAP, DENSE_BATCH, PATIENCE, Run, lowered
from workbench.blending.model.segments import Prefixes
from workbench.blending.model.steps import Chunk, Step
from workbench.blending.model.tree import Tree
from workbench.blending.policy import (
    TILE,
    balanced_batch,
    in_flight,
    lasting_split,
    memory_split,
    predicted_peak,
    prefill_tokens_per_step,
    tiled_up,
)


class Flight:
    """A request in flight: its side, tokens computed and made, and when it is expected to be done."""

    def __init__(self, who: int, place: int, side: int, step: int, own: int, shared: int, expected: int):
        self.who, self.place, self.side, self.admitted = who, place, side, step
        self.own, self.computed, self.todo = own, own + shared, own + shared
        self.made, self.finish, self.since = 0, step + expected, step - own


class Planner:
    """Plans the steps of a run, one after the other; the parameters are those of `model.running.serve`.

    Parameters:
        pool, tree, estimates, order, costs: as there.
        options: scan, batch, retain, cap and patience.

    Attributes:
        done: request -> its flight, its last step and the time that `end` was told.
        log: a row a step, as of `model.running.Run`. swaps: times somebody was swapped out.
    """

    def __init__(self, pool: Pool, tree: Tree, estimates: Estimates, order: Order, costs: Costs, options: tuple):
        jobs, nodes, self.order, self.rules = lowered(pool, tree, estimates, order, costs, *options)
        self.prompt, self.output = jobs.prompt.tolist(), jobs.output.tolist()
        self.expected, self.own, self.node = jobs.expected.tolist(), jobs.own.tolist(), jobs.node.tolist()
        self.prefixes = Prefixes(nodes.parent.tolist(), nodes.tokens.tolist())
        self.waiting = deque(enumerate(order.request.tolist()))
        self.partial: list[Flight | None] = [None, None]
        self.fresh: list[Flight] = []
        self.decoding: list[Flight] = []  # by the step they began
        self.swapped: deque[Flight] = deque()
        self.credit, self.budget, self.share, self.units = [0.0, 0.0], [0.0, 0.0], [0, 0], (-1, -1)
        self.compute_left, self.kv_left = self.rules.compute_left, self.rules.kv_left
        self.log: list[tuple[int, int, int, int, int]] = []
        self.done: dict[int, tuple[Flight, int, float]] = {}
        self.swaps = 0
        self._chunks: list[Chunk] = []
        self._dropped: list[int] = []
        self._returned: list[int] = []

    @property
    def over(self) -> bool:
        """Whether everybody is done."""
        return len(self.done) == self.order.request.size

    def run(self) -> Run:
        """What became of the order, of which all is done."""
        rows = [self.done[who] for who in self.order.request.tolist()]
        admitted, finished, computed = (
            np.array(column, np.int64)
            for column in zip(*((flight.admitted, step, flight.computed) for flight, step, _ in rows), strict=True)
        )
        return Run(
            np.array(self.log, np.int64).reshape(-1, 5), self.order.request, admitted, finished, computed, self.swaps
        )

    # What is held, and who fits.

    @property
    def private(self) -> int:
        """Tokens that nobody shares: of prompts whole from admission on."""
        return sum(flight.own + flight.made for flight in self._flying())

    def _flying(self) -> list[Flight]:
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
            self._dropped.append(self.prefixes.drop())

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
            self._returned.append(flight.who)
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

    def _admit(self, side: int, step: int) -> Flight | None:
        place, who = self.waiting[0 if side == LEFT else -1]
        missing, unused = self.prefixes.missing(self.node[who]), self.prefixes.unused(self.node[who])
        flight = Flight(who, place, side, step, self.own[who], missing, self.expected[who])
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

    def _prompts_of(self, side: int, step: int, tokens: int, on_credit: bool) -> int:
        used = 0
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
            self._chunks.append(Chunk(flight.who, self.prompt[flight.who] - flight.todo, chunk))
            used += chunk
            flight.todo -= chunk
            self.credit[side] -= chunk
            if not flight.todo:
                self.partial[side] = None
                self.fresh.append(flight)
        return used

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

    def _prompts(self, step: int, decodes: int, read: int) -> None:
        if self.rules.scan == SINGLE:
            self._prompts_of(LEFT, step, max(self.rules.batch - decodes, 0), False)
            return
        if self.waiting:
            self._split()
        batch, tokens = self._batch(read), 0
        credited = self.rules.scan == OPEN
        for side in (RIGHT, LEFT):
            if credited:
                most = max(self.budget[side], float(TILE))
                self.credit[side] = min(self.credit[side] + self.budget[side], most)
            tokens += self._prompts_of(side, step, max(batch - decodes - tokens, 0), credited)
        if credited:
            rest = min(tiled_up(max(decodes + tokens, 1)), self.rules.batch) - decodes - tokens
            self._prompts_of(LEFT, step, rest, False)

    def plan(self, step: int) -> Step:
        """What the next step does."""
        self._chunks, self._dropped, self._returned = [], [], []
        self._make_room(step)
        self._bring_back(step)
        decodes = tuple(flight.who for flight in self.decoding)
        read = sum(self.prompt[flight.who] + flight.made + 1 for flight in self.decoding)
        self._prompts(step, len(decodes), read)
        while not self.rules.retain and self.prefixes.idle:
            self._dropped.append(self.prefixes.drop())
        pairs = sum((chunk.first + chunk.count) ** 2 - chunk.first**2 for chunk in self._chunks)
        return Step(tuple(self._chunks), decodes, tuple(self._dropped), tuple(self._returned), read, pairs)

    def end(self, step: int, planned: Step, now_s: float) -> None:
        """Book a step that was done by then."""
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
        tokens = planned.prompt_tokens + len(planned.decodes)
        held = self.private + self.prefixes.held
        self.log.append((tokens, planned.read, planned.pairs, held, len(planned.decodes)))
        self.compute_left -= tokens
        self.kv_left -= planned.read


def steps_of(
    pool: Pool, tree: Tree, estimates: Estimates, order: Order, costs: Costs, scan: str = "single",
    *, batch: int = DENSE_BATCH,
) -> tuple[tuple[Step, ...], Run]:  # fmt: skip
    """All steps of a run, planned without a clock, and the run; see `model.running.serve`."""
    planner = Planner(pool, tree, estimates, order, costs, (scan, batch, False, CAP, PATIENCE))
    steps: list[Step] = []
    while not planner.over:
        steps.append(planner.plan(len(steps)))
        planner.end(len(steps) - 1, steps[-1], 0.0)
    return tuple(steps), planner.run()
