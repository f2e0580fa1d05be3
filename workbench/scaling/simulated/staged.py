"""Batches that pass through the stages of a pipeline: SimPy processes, one a batch, and nodes that they queue for."""

from collections import deque

import numpy as np
import simpy

from workbench.queueing.simulated.clock import Clock

_ENDS, _STARTS = 2, 3
"""At one instant visits end, and then nodes take the next."""


class _Node:
    """Serves one visit at a time, in the order of (ready, batch)."""

    def __init__(self, clock: Clock):
        self.clock, self.waiting, self.busy = clock, [], False

    def visit(self, batch: int) -> simpy.Event:
        """An event that happens when the batch's turn has come."""
        turn = self.clock.event()
        self.waiting.append((self.clock.now, batch, turn))
        self.look()
        return turn

    def look(self) -> None:
        """Take the next when all that happens at this instant has happened."""
        self.clock.at(self.clock.now, _STARTS).callbacks.append(lambda _: self._take())

    def _take(self) -> None:
        if self.waiting and not self.busy:
            first = min(self.waiting, key=lambda entry: entry[:2])
            self.waiting.remove(first)
            self.busy = True
            first[2].succeed()

    def leave(self) -> None:
        self.busy = False
        self.look()


def simulate_free_running(visit_node, visit_s, batches: int, tokens: int, in_flight: int) -> np.ndarray:
    """Starts of all visits, float64[batches, tokens, visits]; parameters as of `kernels.staged.free_running`."""
    clock = Clock()
    nodes = {node: _Node(clock) for node in visit_node}
    start_s = np.full((batches, tokens, len(visit_node)), np.nan)
    to_come = deque(range(batches))

    def run(batch: int):
        for token in range(tokens):
            for number, (name, seconds) in enumerate(zip(visit_node, visit_s, strict=True)):
                node = nodes[name]
                yield node.visit(batch)
                start_s[batch, token, number] = clock.now
                yield clock.at(clock.now + seconds, _ENDS)
                node.leave()
        enter()

    def enter() -> None:
        if to_come:
            clock.process(run(to_come.popleft()))

    for _ in range(in_flight):
        enter()
    clock.run()
    return start_s


def simulate_lock_step(run_node, block_s, batches: int, tokens: int, in_flight: int) -> np.ndarray:
    """Starts of all blocks, float64[batches, tokens, blocks]; parameters as of `kernels.staged.lock_step`."""
    clock = Clock()
    start_s = np.full((batches, tokens, len(run_node)), np.nan)
    to_come, inside = deque(range(batches)), []
    at = [0] * batches

    def one_node(work: list[int]):
        """The blocks of one node in a round, one after the other."""
        for batch in work:
            token, block = divmod(at[batch], len(run_node))
            start_s[batch, token, block] = clock.now
            yield clock.at(clock.now + block_s[block], _ENDS)

    def rounds():
        while to_come or inside:
            wanted = [run_node[at[batch] % len(run_node)] for batch in inside]
            if to_come and len(inside) < in_flight and run_node[0] not in wanted:
                inside.append(to_come.popleft())
                wanted.append(run_node[0])
            works = {}
            for batch, node in sorted(zip(inside, wanted, strict=True)):
                works.setdefault(node, []).append(batch)
            yield simpy.AllOf(clock, [clock.process(one_node(work)) for work in works.values()])
            for batch in list(inside):
                at[batch] += 1
                if at[batch] == tokens * len(run_node):
                    inside.remove(batch)

    clock.process(rounds())
    clock.run()
    return start_s
