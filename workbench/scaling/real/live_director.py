"""The parent of a real live scale-out: it asks the policy who runs what, and goes on when a node is lost."""

import math
import time
from collections.abc import Mapping, Sequence
from itertools import count

import numpy as np

from workbench.executor.driving import LEAD_S
from workbench.executor.faults import BlocksLost, Kill, ProcessLost, RunFailed, Stop
from workbench.executor.instances.instance import serve_instance
from workbench.executor.instances.orders import (
    Decode,
    Denied,
    Drop,
    Give,
    Hand,
    InstancePlan,
    Layer,
    Ran,
    Read,
    Rest,
    Said,
    SendBlocks,
    StopSending,
)
from workbench.executor.processes import Worker
from workbench.executor.transformer_serving.node import READY
from workbench.executor.transformer_serving.orders import End, Refused, Took
from workbench.executor.watching import Died, Done, Due, Failed, Hung, watch
from workbench.executor.watching import Said as Told
from workbench.scaling.real.live_copies import Copies
from workbench.scaling.real.live_ended import Ended, Loss, Refusal
from workbench.scaling.real.live_outcome import NEW, OLD, WHOLE, Cancel, LiveScaleOut
from workbench.scaling.real.live_queue import LiveQueue
from workbench.scaling.real.manager import Watching
from workbench.scaling.real.outcome import BlockRefused

INSTANT = 0.4
"""Of a layer's time: what is expected within it happens at the same instant. Formula and simulation have instants at
which a layer comes just when a step ends, and rules for who then looks first; processes are some milliseconds apart."""

NEVER_S = math.inf


class Director:
    """One run.

    Parameters:
        workers: one a node.
        plans: of each node.
        asked: what is asked for.
        unit_s: seconds of the run that one unit of its times takes.
        copies: of the weights.
        follow: tokens that are decoded after the first.
        drills: what goes wrong on purpose.
        watching: how it is watched over.
    """

    def __init__(
        self,
        workers: Sequence[Worker],
        plans: Mapping[int, InstancePlan],
        asked: LiveScaleOut,
        unit_s: float,
        copies: Copies,
        follow: int,
        drills: Sequence[Kill | Stop | Cancel],
        watching: Watching,
    ):
        self._workers, self._plans = {worker.number: worker for worker in workers}, plans
        self._asked, self._copies, self._follow = asked, copies, follow
        self._drills, self._watching = drills, watching
        self._alive = set(self._workers)
        self._count = len(asked.pair.arrival_s)
        self._layer_s = unit_s * asked.pair.arrays[2]
        self._arrival_s = unit_s * asked.pair.arrays[1]
        self._width_s = INSTANT * float(self._layer_s.min())
        self._block_s = unit_s * asked.pair.load_s
        olds = asked.old or [None] * asked.chains
        self._queues = [LiveQueue(asked.pair, old, new) for old, new in zip(olds, asked.tails, strict=True)]
        self._whole = [dict.fromkeys(chain[:-1], -1) for chain in asked.new]
        self._held = {node: 0 for chain in asked.new for node in chain}
        self._flows, self._names = dict[int, tuple[int, int]](), count()
        self._ends: dict[int, float] = {}
        self._cancelled: set[int] = set()
        self._alarms: list[float] = []
        self._meanings: list[object] = []
        self._end = Ended(
            start_s=0.0, queues=self._queues, finish_s=[np.full(self._count, np.nan) for _ in self._queues],
            slots=[], took={}, late_s=[], logits={}, said={}, losses=[], reports={},
        )  # fmt: skip
        self._start_s, self._decoding = NEVER_S, False

    def run(self, beats) -> Ended:
        """Run to the end: every batch done, what follows said, and every new instance complete that is left.

        Errors: see `workbench.scaling.real.live_sharing.share_for_real`.
        """
        for node, worker in self._workers.items():
            worker.give(serve_instance, self._plans[node])
        ready: set[int] = set()
        self._wake_at(time.monotonic() + self._watching.timeout_s, "time is up")
        for event in watch(
            list(self._workers.values()), beats, alarms=self._alarms, heartbeat_s=self._watching.heartbeat_s,
            stop=self._watching.stop,
        ):  # fmt: skip
            match event:
                case Told(node, value) if value == READY:
                    ready.add(node)
                    if ready == set(self._workers):
                        self._begin()
                case Told(node, value):
                    self._heard(node, value)
                case Done(node, report):
                    self._end.reports[node] = report
                case Died(node, at_s):
                    self._lost(node, "died", at_s)
                case Hung(node, at_s):
                    self._workers[node].kill()
                    self._lost(node, "hung", at_s)
                case Due(alarm):
                    self._due(self._meanings[alarm])
                case Failed(node, text):
                    raise RunFailed(f"Node {node} failed with {text}.")
            if self._alive <= set(self._end.reports):
                break
            if not self._decoding and self._over():
                self._say_the_rest()
        return self._end.model_copy(update={"start_s": self._start_s})

    # ---- the start, and what is told

    def _begin(self) -> None:
        """The first layer is to be at the tails at the start, as formula and simulation have it."""
        sending_s = time.monotonic() + LEAD_S
        plan = self._plans[self._asked.tails[0]]
        hops_s = (self._asked.targets - 1) * self._block_s / plan.pieces
        self._start_s = sending_s + self._block_s + hops_s
        if self._block_s:
            every = tuple(range(self._asked.pair.layers))
            for hop in self._copies.first_hops():
                self._send(hop.source, hop.card, hop.target, every, sending_s)
        else:
            for node in self._held:
                self._held[node] = self._asked.pair.layers
                self._copies.complete(node, self._start_s)
        for batch, arrival_s in enumerate(self._arrival_s.tolist()):
            self._wake_at(self._start_s + arrival_s, batch)
        for drill in self._drills:
            self._wake_at(self._start_s + drill.at_s, drill)

    def _due(self, meaning: object) -> None:
        match meaning:
            case int():
                for queue in self._queues:
                    queue.arrived = max(queue.arrived, meaning + 1)
                    queue.ready = self._ready(queue)
                self._decide(self._start_s + self._arrival_s[meaning])
            case Kill(node=node):
                self._workers[node].kill()
            case Stop(node=node):
                self._workers[node].stop()
            case Cancel(node=node):
                self._cancel(node)
            case "time is up":
                raise RunFailed(f"The run took longer than the {self._watching.timeout_s:.0f} s it may; allow more.")
            case "look":
                self._decide(time.monotonic())

    def _heard(self, node: int, value: object) -> None:
        match value:
            case Took(block, at_s) if node in self._held:
                self._end.took[node, block] = at_s
                self._held[node] += 1
                if self._held[node] == self._asked.pair.layers:
                    self._copies.complete(node, at_s)
                for queue in self._queues:
                    queue.ready = self._ready(queue)
                self._decide(at_s)
            case Ran():
                self._ran(node, value)
                self._decide(value.end_s)
            case Refused(block, why):
                raise BlockRefused(node, block, why)
            case Denied(why):
                raise Refusal(f"Node {node} refused what it was handed: {why}")
            case Said(logits):
                keys = [(pair, batch) for pair in range(len(self._queues)) for batch in range(self._count)]
                self._end.said.update(zip(keys, logits, strict=True))
                for other in self._alive:
                    self._workers[other].tell(End())

    def _ready(self, queue: LiveQueue) -> int:
        """Layers that the tail has; before the start it may have the first ones already, which are not used yet."""
        return self._held[queue.new] if queue.helping and time.monotonic() >= self._start_s else 0

    # ---- who runs what

    def _decide(self, since_s: float) -> None:
        """Ask the policy for all that are idle; `since_s` is the instant of what has just happened."""
        if time.monotonic() < self._start_s or self._decoding:
            return
        for pair, queue in enumerate(self._queues):
            if (look_s := self._same_instant(queue)) is not None:
                self._wake_at(look_s, "look")
                continue
            if (batch := queue.for_old()) >= 0:
                queue.working = batch
                moved = int(queue.moved[batch])
                if moved:
                    self._tell(queue.new, Hand(self._name(pair, batch), int(queue.turn[batch]), queue.old))
                self._run_rest(pair, batch, queue.old, moved, since_s)
            if (batch := queue.for_new()) >= 0:
                queue.begin_on_new(batch)
                order = Layer(self._name(pair, batch), int(queue.turn[batch]), int(queue.moved[batch]), since_s)
                self._tell(queue.new, order)
                self._ends[queue.new] = time.monotonic() + self._layer_s[batch]
            for node, working in self._whole[pair].items():
                complete = node in self._alive and self._held[node] == self._asked.pair.layers
                if complete and working < 0 and (batch := queue.for_whole()) >= 0:
                    self._whole[pair][node] = batch
                    self._run_rest(pair, batch, node, 0, since_s)

    def _run_rest(self, pair: int, batch: int, node: int, moved: int, since_s: float) -> None:
        queue = self._queues[pair]
        queue.taken[batch], queue.by[batch] = True, node
        self._tell(node, Rest(self._name(pair, batch), int(queue.turn[batch]), moved, since_s))
        left = self._asked.pair.layers - moved
        self._ends[node] = time.monotonic() + self._layer_s[batch] * left

    def _same_instant(self, queue: LiveQueue) -> float | None:
        """Until when to wait for what is expected at this instant; None where nothing is."""
        now_s = time.monotonic()
        expected = [self._ends[node] for node in (queue.old, queue.new) if node in self._ends]
        if queue.helping and self._block_s and queue.ready < self._asked.pair.layers:
            expected.append(self._start_s + queue.ready * self._block_s)
        if queue.arrived < self._count:
            expected.append(self._start_s + self._arrival_s[queue.arrived])
        near = [end_s for end_s in expected if abs(end_s - now_s) < self._width_s]
        return min(near) + self._width_s if near else None

    def _ran(self, node: int, ran: Ran) -> None:
        pair, batch = divmod(ran.batch, self._count)
        queue, stale = self._queues[pair], ran.turn != self._queues[pair].turn[batch]
        kind = OLD if node == queue.old else NEW if node == queue.new else WHOLE
        self._ends.pop(node, None)
        if kind == OLD:
            queue.working = -1
        elif kind == NEW:
            queue.busy = -1
        else:
            self._whole[pair][node] = -1
        if stale:
            return
        self._end.late_s.append(ran.late_s)
        self._end.slots.append((pair, kind, batch, ran.begin_s, ran.end_s))
        if kind == NEW:
            queue.moved[batch] += 1
        if ran.logits is not None:
            queue.taken[batch], queue.done[batch], queue.by[batch] = True, True, node
            self._end.finish_s[pair][batch] = ran.end_s
            self._end.logits[pair, batch] = ran.logits

    # ---- what is lost

    def _cancel(self, node: int) -> None:
        """The load of a new instance is called off; it hands over what it has begun."""
        self._end.losses.append(Loss(time.monotonic(), node, "cancelled"))
        self._cancelled.add(node)
        self._stop_flows_to(node)
        for queue in self._queues:
            if queue.new == node:
                if queue.old is None:
                    raise ProcessLost(
                        node, "was cancelled", time.monotonic() - self._start_s, None, "no instance is left that serves"
                    )
                queue.without_new(lost=False)
        self._decide(time.monotonic())

    def _lost(self, node: int, kind: str, at_s: float) -> None:
        if self._start_s == NEVER_S:
            raise RunFailed(f"The process of node {node} was lost before the start; run it again.")
        since_s = at_s - self._start_s
        if self._decoding:
            raise ProcessLost(node, kind, since_s, None, "it held what was to be decoded: run it again")
        self._alive.discard(node)
        self._ends.pop(node, None)
        self._end.losses.append(Loss(at_s, node, kind))
        hosts = self._copies.lost(node, at_s)
        for host in hosts:
            self._tell(host, Read(tuple(block.path for block in self._plans[host].model.blocks)))
        self._stop_flows_to(node)
        for pair, queue in enumerate(self._queues):
            again = queue.without_new(lost=True) if node == queue.new else []
            if node == queue.old:
                again = queue.without_old()
            elif node in self._whole[pair]:
                again = queue.without_whole(node)
                del self._whole[pair][node]
            if queue.old is None and not queue.helping:
                raise ProcessLost(node, kind, since_s, None, "no instance is left that serves: start others")
            for batch in again:
                for other in self._alive:
                    self._tell(other, Drop(self._name(pair, batch), int(queue.turn[batch]) - 1))
        self._send_again(node, kind, since_s)
        self._decide(at_s)

    def _send_again(self, node: int, kind: str, since_s: float) -> None:
        """Whoever received from the lost node receives the rest from another copy."""
        for flow, (source, target) in list(self._flows.items()):
            missing = tuple(b for b in range(self._asked.pair.layers) if (target, b) not in self._end.took)
            if source != node or not missing:
                continue
            del self._flows[flow]
            if (holder := self._copies.source()) is None:
                raise BlocksLost(node, kind, since_s, None, list(missing))
            self._send(holder, 0, target, missing, time.monotonic())

    def _send(self, source: int, card: int, target: int, blocks: tuple[int, ...], start_s: float) -> None:
        flow = next(self._names)
        self._flows[flow] = source, target
        self._tell(source, SendBlocks(flow, target, blocks, card, start_s))

    def _stop_flows_to(self, node: int) -> None:
        for flow, (source, target) in list(self._flows.items()):
            if target == node:
                del self._flows[flow]
                self._tell(source, StopSending(flow))

    # ---- the end

    def _over(self) -> bool:
        left = [node for node in self._held if node in self._alive and node not in self._cancelled]
        done = all(queue.done.all() and queue.working < 0 for queue in self._queues)
        return self._start_s < NEVER_S and done and all(self._held[n] == self._asked.pair.layers for n in left)

    def _say_the_rest(self) -> None:
        """Every node sends its layers of all caches to one that decodes: the source, or an old instance without it."""
        self._decoding = True
        computing = [*self._asked.old, *(node for chain in self._asked.new for node in chain)]
        complete = [n for n in computing if n in self._alive and self._held.get(n, 10**9) >= self._asked.pair.layers]
        decoder = 0 if 0 in self._alive else complete[0]
        keys, tokens = [], []
        for pair, queue in enumerate(self._queues):
            for batch in range(self._count):
                key = self._name(pair, batch), int(queue.turn[batch])
                keys.append(key)
                tokens.append(tuple(self._end.logits[pair, batch].argmax(-1).tolist()))
                for node in {int(queue.by[batch]), *([queue.new] if queue.moved[batch] else [])}:
                    if node != decoder:
                        self._tell(node, Give(*key, decoder))
        self._tell(decoder, Decode(tuple(keys), tuple(tokens), self._follow))

    def _name(self, pair: int, batch: int) -> int:
        """The number by which nodes know a batch."""
        return pair * self._count + batch

    def _tell(self, node: int, order: object) -> None:
        if node in self._alive:
            self._workers[node].tell(order)

    def _wake_at(self, instant_s: float, meaning: object) -> None:
        self._meanings.append(meaning)
        self._alarms.append(instant_s)
