"""The task of one node: it receives and passes on weights, and computes with what it has so far."""

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.executor.blocks import Blocks
from workbench.executor.desk import Desk
from workbench.executor.faults import Flip, Swap
from workbench.executor.group import break_up, open_group
from workbench.executor.held import Broken, Held
from workbench.executor.links import Arrival, Links
from workbench.executor.transformer import Stage, keeps_bits, unpack
from workbench.executor.transformer.checking import what_is_wrong
from workbench.executor.transformer.placing import pin
from workbench.executor.transformer_serving.orders import (
    Begin,
    Dissolve,
    End,
    Forget,
    NodePlan,
    Refused,
    Replace,
    Start,
    Took,
    Work,
)
from workbench.executor.transformer_serving.passes import Passes
from workbench.executor.transformer_serving.wires import Wires

READY = "ready"


class NodeReport(NamedTuple):
    """What one node has to say at the end.

    Attributes:
        arrivals: the transfers it received, in order.
        held: blocks that it holds completely.
        late_s: of every pass how much later it ended than it should have; 0 where it was held back in time.
        holds_s: of every pass how long it should have taken.
        busy_s: processor seconds between start and end.
        error: "" or why the run was broken off.
    """

    arrivals: list[Arrival]
    held: list[int]
    late_s: list[float]
    holds_s: list[float]
    busy_s: float
    error: str


class _Noticed(Held):
    """Blocks held, of which every new one is told."""

    def __init__(self, notice: Callable[[int, float], None]):
        super().__init__()
        self._notice = notice

    def add(self, block: int, since_s: float) -> None:
        super().add(block, since_s)
        self._notice(block, since_s)


def serve_node(desk: Desk, plan: NodePlan) -> NodeReport:
    """Run one node's part; a run that is broken off reports what arrived before."""
    node = _Node(desk, plan)
    try:
        return node.run()
    finally:
        node.close()


class _Node:
    def __init__(self, desk: Desk, plan: NodePlan):
        self._desk, self._plan = desk, plan
        self._inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._blocks, self._stage = _memory(desk, plan), _stage(desk, plan)
        keeps_bits(plan.model.shape, plan.device)  # the first pass of a process costs tens of milliseconds more
        self._held = _Noticed(self._arrived)
        for block in plan.holds:
            Held.add(self._held, block, 0.0)
            self._take(block)
        self._arrivals: list[Arrival] = []
        self._group = open_group(plan.rendezvous, plan.rank, plan.size, plan.timeout_s)
        wires = Wires(self._group, plan.ranks, plan.model.shape.hidden, self._inbox.put, self._break_off)
        self._passes = Passes(desk.number, plan, self._stage, wires, self._inbox.put, desk.say, self._held.check)
        wires.listen(_upstream(desk.number, plan))
        desk.on_call_off(self._break_off)
        desk.on_word(self._inbox.put)
        desk.say(READY)

    def run(self) -> NodeReport:
        begun_s, threads = time.process_time(), []
        try:
            while not isinstance(event := self._inbox.get(), End):
                match event:
                    case Start(start_s):
                        begun_s, threads = time.process_time(), self._move_weights(start_s)
                    case Took(block, at_s):
                        self._take(block)
                        self._desk.say(Took(block, at_s))
                    case Begin():
                        self._passes.begin(event)
                    case Work():
                        self._passes.run(event)
                    case Dissolve(route):
                        self._passes.dissolve(route)
                    case Forget(requests):
                        self._passes.forget(requests)
                    case Broken():
                        raise event
        except (Broken, RuntimeError) as error:  # RuntimeError: a link to a node that is gone
            self._break_off(str(error))
        for thread in threads:
            thread.join()
        busy_s = time.process_time() - begun_s
        return NodeReport(
            self._arrivals, self._held.blocks(), self._passes.late_s, self._passes.holds_s, busy_s, self._held.reason
        )

    def close(self) -> None:
        """End the threads that still wait for a peer."""
        self._held.break_off("the run is over")
        break_up(self._group)

    def _move_weights(self, start_s: float) -> list[threading.Thread]:
        faults = tuple(fault for fault in self._plan.faults if isinstance(fault, Flip | Swap))
        links = Links(self._group, self._blocks, self._held, "real", faults)

        def guarded(work: Callable[..., None], *arguments: Any) -> None:
            try:
                work(*arguments)
            except Broken:
                return
            except Exception as error:
                self._break_off(f"{type(error).__name__}: {error}")

        plan = self._plan
        jobs = [(links.send, plan.sends, start_s), (links.receive, plan.receives, start_s, self._arrivals)]
        threads = [threading.Thread(target=guarded, args=job, daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        return threads

    def _arrived(self, block: int, at_s: float) -> None:
        for fault in self._plan.faults:
            if isinstance(fault, Replace) and fault.block == block:
                self._blocks.payload(block)[:] = np.fromfile(fault.path, dtype=np.uint8)
        self._inbox.put(Took(block, at_s))

    def _take(self, block: int) -> None:
        """Check a block and load it, if this node serves; nothing of another version is ever loaded or sent."""
        if wrong := what_is_wrong(self._blocks.payload(block), block, self._plan.model):
            self._desk.say(Refused(block, wrong))
            raise Broken(wrong)
        if self._plan.serves:
            found = unpack(self._blocks.payload(block), f"block {block}")
            self._stage.load(found.tensors, found.notes["version"])

    def _break_off(self, reason: str) -> None:
        if self._held.break_off(reason):
            self._inbox.put(Broken(reason))
            break_up(self._group)


def _memory(desk: Desk, plan: NodePlan) -> Blocks:
    """Memory for all blocks, made and touched before anything arrives; a source's is filled from its files."""
    sizes = tuple(block.size for block in plan.model.blocks)
    if plan.fresh:
        desk.kept.pop("stage", None)  # its weights lie in this memory
        blocks: Blocks | None = desk.kept.get("blocks")
        if blocks is None or blocks.sizes != sizes:
            blocks = desk.kept["blocks"] = Blocks(sizes)
            if plan.device != "cpu":
                pin(blocks.memory)
        blocks.clear()
        for block, path in enumerate(plan.files):
            if os.path.getsize(path) != sizes[block]:
                raise OSError(f"{os.path.basename(path)} has {os.path.getsize(path)} bytes, not {sizes[block]}")
            blocks.payload(block)[:] = np.fromfile(path, dtype=np.uint8)
    return desk.kept["blocks"]


def _stage(desk: Desk, plan: NodePlan) -> Stage:
    if plan.fresh:
        desk.kept["stage"] = Stage(plan.model.shape, "invariant", plan.device)
    return desk.kept["stage"]


def _upstream(node: int, plan: NodePlan) -> list[int]:
    """The nodes that ever send a pass to this one: neighbours in a route, and its last node to its first."""
    found = set()
    for route in plan.routes:
        for place, segment in enumerate(route):
            if segment.node == node:
                found.add(route[place - 1].node)
    return sorted(found - {node})
