"""The task of one node in a real multicast: join the group, pass blocks on by the plan, report what happened."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from workbench.executor.blocks import Blocks, map_memory
from workbench.executor.clock import Clock
from workbench.executor.desk import CalledOff, Desk
from workbench.executor.faults import Flip, Swap
from workbench.executor.group import break_up, open_group
from workbench.executor.held import Broken, Held
from workbench.executor.links import Arrival, Links, Receive, Send
from workbench.executor.shared import SharedLinks

READY = "ready"


class Plan(NamedTuple):
    """What one node is to do.

    Attributes:
        rendezvous, rank, size: where the members of the group meet, this node's rank, how many they are.
        sizes: bytes of each block.
        seed: what the bytes are made from.
        holds: blocks that the node has from the start.
        fresh: whether it makes those blocks from the seed; else they are what an earlier task of this worker left.
        sends, receives: its transfers, in the schedule's order.
        clock: see `workbench.executor.clock.Clock`.
        shared: whether receivers copy blocks out of their senders' memory, without a group.
        timeout_s: longest time the whole run may take.
        faults: what happens to blocks that arrive.
    """

    rendezvous: str
    rank: int
    size: int
    sizes: tuple[int, ...]
    seed: int
    holds: tuple[int, ...]
    fresh: bool
    sends: tuple[Send, ...]
    receives: tuple[Receive, ...]
    clock: Clock
    shared: bool
    timeout_s: float
    faults: tuple[Flip | Swap, ...] = ()


class Report(NamedTuple):
    """What one node has to say at the end.

    Attributes:
        arrivals: the transfers it received, in order.
        held: blocks it holds completely.
        busy_s: processor seconds of the process between start and end.
        error: "" or why the run was broken off.
    """

    arrivals: list[Arrival]
    held: list[int]
    busy_s: float
    error: str


def relay(desk: Desk, plan: Plan) -> Report:
    """Run one node's part of a multicast; a run that is broken off reports what arrived before."""
    blocks = _prepared(desk, plan)
    held = Held()
    for block in plan.holds:
        held.add(block, 0.0)
    arrivals: list[Arrival] = []
    group = None if plan.shared else open_group(plan.rendezvous, plan.rank, plan.size, plan.timeout_s)
    desk.kept["group"] = group  # stays open until the next task: closing it early could cut off a peer's last block

    def break_off(reason: str) -> None:
        if held.break_off(reason) and group is not None:
            break_up(group)

    desk.on_call_off(break_off)
    desk.say((os.getpid(), blocks.handle))
    busy_s = time.process_time()
    try:
        places: tuple[tuple[int, int], ...] = desk.hear()
        if plan.shared:
            sources = {peer: map_memory(places[peer]) for peer in {transfer.peer for transfer in plan.receives}}
            links = SharedLinks(blocks, held, sources, plan.faults)
        else:
            links = Links(group, blocks, held, plan.clock, plan.faults)
        desk.say(READY)
        start_s: float = desk.hear()
        busy_s = time.process_time()
        _run(links, plan, start_s, arrivals, break_off)
    except CalledOff as reason:
        held.break_off(str(reason))
    return Report(arrivals, held.blocks(), time.process_time() - busy_s, held.reason)


def digests(desk: Desk) -> list[str]:
    """SHA-256 of each block that this worker's last task left in memory.

    A task of its own, given when all nodes are done: hashing beside a run would make the last blocks late.
    """
    blocks: Blocks = desk.kept["blocks"]
    return [blocks.digest(block) for block in range(len(blocks.sizes))]


def _prepared(desk: Desk, plan: Plan) -> Blocks:
    """The node's memory: cleared, so that nothing of an earlier run can pass for received, unless it is to be kept."""
    blocks = desk.kept.get("blocks")
    if blocks is None or blocks.sizes != plan.sizes:
        blocks = desk.kept["blocks"] = Blocks(plan.sizes)
    if plan.fresh:
        blocks.clear()
        for block in plan.holds:
            blocks.fill(plan.seed, block)
    return blocks


def _run(
    links: Links | SharedLinks, plan: Plan, start_s: float, arrivals: list[Arrival], break_off: Callable[[str], None]
) -> None:
    """Send in a thread of its own and receive in this one; the first error ends both."""

    def guarded(work: Callable[..., None], *arguments: Any) -> None:
        try:
            work(*arguments)
        except Broken:
            return
        except Exception as error:
            break_off(f"{type(error).__name__}: {error}")

    sender = threading.Thread(target=guarded, args=(links.send, plan.sends, start_s), daemon=True)
    sender.start()
    guarded(links.receive, plan.receives, start_s, arrivals)
    sender.join()
