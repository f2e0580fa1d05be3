"""The task of one node: it receives and passes on weights, and runs the layers that it is told to, in their time."""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from workbench.executor.blocks import Blocks
from workbench.executor.clock import sleep_until
from workbench.executor.desk import Desk
from workbench.executor.held import Broken
from workbench.executor.instances.mail import Mail
from workbench.executor.instances.orders import (
    Decode,
    Denied,
    Drop,
    Give,
    Hand,
    InstancePlan,
    InstanceReport,
    Layer,
    Ran,
    Read,
    Rest,
    Said,
    SendBlocks,
    StopSending,
)
from workbench.executor.instances.ports import Port, paced
from workbench.executor.transformer import KvCache, KvPart, MixedVersions, Stage, forward, keeps_bits, unpack
from workbench.executor.transformer.checking import what_is_wrong
from workbench.executor.transformer.placing import pin
from workbench.executor.transformer_serving.node import READY
from workbench.executor.transformer_serving.orders import End, Refused, Took

WEIGHTS, ACTIVATIONS, CACHES = "weights", "activations", "caches"
Key = tuple[int, int]


def serve_instance(desk: Desk, plan: InstancePlan) -> InstanceReport:
    """Run one node's part until its parent ends it."""
    instance = _Instance(desk, plan)
    try:
        return instance.run()
    finally:
        instance.close()


class _Instance:
    def __init__(self, desk: Desk, plan: InstancePlan):
        self._desk, self._plan, self._over = desk, plan, False
        self._changed = threading.Condition()
        self._memory = _memory(desk, plan)
        self._arrived = [0] * len(plan.model.blocks)
        self._stage = Stage(plan.model.shape, "invariant", plan.device)
        keeps_bits(plan.model.shape, plan.device)  # the first pass of a process costs tens of milliseconds more
        self._caches: dict[Key, list[KvCache]] = {}
        self._hidden: dict[Key, list[Any]] = {}
        self._handed: dict[Key, list[Any]] = {}
        self._dropped: set[Key] = set()
        self._stopped: set[int] = set()
        self._ports = [Port() for _ in range(plan.cards)]
        self._inbox: queue.SimpleQueue = queue.SimpleQueue()
        self._errands: queue.SimpleQueue = queue.SimpleQueue()
        self._late_s: list[float] = []
        self._mail = Mail(plan.folder, desk.number, self._guarded(self._deliver))
        self._read(plan.files, quiet=True)
        threading.Thread(target=self._guarded(self._run_errands), daemon=True).start()
        desk.on_word(self._word)
        desk.say(READY)

    def run(self) -> InstanceReport:
        """Do what is told, one thing after the other."""
        import torch

        begun_s, busy_s = time.process_time(), None
        with torch.inference_mode():
            while not isinstance(order := self._inbox.get(), End):
                match order:
                    case Layer():
                        self._layer(order)
                    case Rest():
                        self._rest(order)
                    case Decode():
                        busy_s = time.process_time() - begun_s
                        self._decode(order)
        return InstanceReport(self._late_s, time.process_time() - begun_s if busy_s is None else busy_s)

    def close(self) -> None:
        """End the threads that still wait."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._errands.put(None)
        self._mail.close()

    def _word(self, order: Any) -> None:
        """What the parent says; called by the thread that also gives signs of life, so nothing here takes long."""
        match order:
            case SendBlocks():
                threading.Thread(target=self._guarded(self._send_blocks), args=(order,), daemon=True).start()
            case StopSending(flow):
                with self._changed:
                    self._stopped.add(flow)
                    self._changed.notify_all()
            case Drop(batch, turn):
                with self._changed:
                    self._dropped.add((batch, turn))
                    self._changed.notify_all()
            case Read() | Hand() | Give():
                self._errands.put(order)
            case _:
                self._inbox.put(order)

    def _guarded(self, work: Callable[..., None]) -> Callable[..., None]:
        """What a thread of its own does: its end by the run's end is no error, any other is told."""

        def guarded(*arguments: Any) -> None:
            try:
                work(*arguments)
            except (Broken, EOFError, OSError):
                if arguments and isinstance(arguments[-1], Connection):
                    raise EOFError from None  # ends the thread of this connection
            except Exception as error:
                self._desk.say(Denied(f"{type(error).__name__}: {error}"))

        return guarded

    def _run_errands(self) -> None:
        while (errand := self._errands.get()) is not None:
            with suppress(OSError):  # the other one is gone
                match errand:
                    case Read(files):
                        self._read(files, quiet=False)
                    case Hand(batch, turn, node):
                        hidden = self._hidden.pop((batch, turn))
                        header = {"batch": batch, "turn": turn, "version": self._stage.version}
                        sizes = [len(one) for one in hidden]
                        rows = np.concatenate([one.cpu().numpy() for one in hidden])
                        self._mail.send(node, ACTIVATIONS, header | {"sizes": sizes}, rows.data.cast("B"))
                    case Give(batch, turn, node):
                        self._give(batch, turn, node)

    # ---- weights

    def _read(self, files: Sequence[str], quiet: bool) -> None:
        sizes = self._memory.sizes
        for block, path in enumerate(files):
            if os.path.getsize(path) != sizes[block]:
                raise ValueError(f"{os.path.basename(path)} has {os.path.getsize(path)} bytes, not {sizes[block]}")
            self._memory.payload(block)[:] = np.fromfile(path, dtype=np.uint8)
            self._take(block)
            if not quiet:
                self._desk.say(Took(block, time.monotonic()))

    def _take(self, block: int) -> None:
        """Check a whole block and load it, if this node computes; only then it counts as held."""
        if wrong := what_is_wrong(self._memory.payload(block), block, self._plan.model):
            self._desk.say(Refused(block, wrong))
            raise Broken(wrong)
        if self._plan.computes:
            self._load(block)
        with self._changed:
            self._arrived[block] = self._memory.sizes[block]
            self._changed.notify_all()

    def _load(self, block: int) -> None:
        found = unpack(self._memory.payload(block), f"block {block}")
        self._stage.load(found.tensors, found.notes["version"])

    def _send_blocks(self, order: SendBlocks) -> None:
        def check() -> None:
            if self._over or order.flow in self._stopped:
                raise Broken("the flow was called off")

        sleep_until(order.start_s, check)
        paced(self._ports[order.card], self._pieces(order, check), check)

    def _pieces(self, order: SendBlocks, check: Callable[[], None]) -> Iterator[tuple[float, Callable[[float], None]]]:
        """The pieces of blocks as they come; a piece goes on before its block is whole, the next one checks it too."""
        for block in order.blocks:
            size = self._memory.sizes[block]
            edges = [size * piece // self._plan.pieces for piece in range(self._plan.pieces + 1)]
            for start, end in pairwise(edges):
                with self._changed:
                    while self._arrived[block] < end:
                        check()
                        self._changed.wait()
                yield (
                    self._plan.block_s * (end - start) / size,
                    partial(self._send_piece, order.node, block, start, end),
                )

    def _send_piece(self, node: int, block: int, start: int, end: int, due_s: float) -> None:
        header = {"block": block, "start": start, "end": end, "due_s": due_s}
        self._mail.send(node, WEIGHTS, header, self._memory.payload(block)[start:end].data)

    def _deliver(self, header: dict[str, Any], connection: Connection) -> None:
        if "block" in header:
            self._piece(header, connection)
        elif "sizes" in header:
            self._handed_over(header, connection.recv_bytes())
        else:
            self._part(header, connection.recv_bytes())

    def _piece(self, header: dict[str, Any], connection: Connection) -> None:
        """Hold a piece until its link would have delivered it; the last one makes the block whole."""
        block, end, due_s = header["block"], header["end"], header["due_s"]
        payload, plan = self._memory.payload(block), self._plan
        connection.recv_bytes_into(payload[header["start"] : end].data)

        def check() -> None:
            if self._over:
                raise Broken("the run is over")

        sleep_until(due_s, check)
        if end < len(payload):
            with self._changed:
                self._arrived[block] = end
                self._changed.notify_all()
            return
        for fault in plan.faults:
            if fault.block == block:
                payload[:] = np.fromfile(fault.path, dtype=np.uint8)
        self._take(block)
        at_s = time.monotonic()
        self._late_s.append(at_s - due_s)
        self._desk.say(Took(block, at_s))

    # ---- layers

    def _layer(self, order: Layer) -> None:
        begun_s, key = time.monotonic(), (order.batch, order.turn)
        hidden = self._hidden.pop(key, None) or self._stage.embed(self._plan.batches[order.batch])
        hidden = self._stage.run(order.layer, 1, hidden, self._caches_of(key))
        last = order.layer + 1 == self._plan.model.shape.layers
        logits = self._stage.logits(hidden).cpu().numpy() if last else None
        self._hidden[key] = hidden
        self._ran(order, begun_s, self._plan.layer_s[order.batch], logits)

    def _rest(self, order: Rest) -> None:
        begun_s, key, plan = time.monotonic(), (order.batch, order.turn), self._plan
        layers = plan.model.shape.layers - order.first
        hold_s = layers * plan.layer_s[order.batch] + (plan.hand_s[order.batch] if order.first else 0.0)
        if order.first:
            with self._changed:
                self._changed.wait_for(lambda: key in self._handed or key in self._dropped or self._over)
                hidden = self._handed.pop(key, None)
        else:
            hidden = self._stage.embed(plan.batches[order.batch])
        if hidden is None or key in self._dropped:  # what was to be handed over is lost
            self._desk.say(Ran(order.batch, order.turn, begun_s, time.monotonic(), 0.0, None))
            return
        hidden = self._stage.run(order.first, layers, hidden, self._caches_of(key))
        self._ran(order, begun_s, hold_s, self._stage.logits(hidden).cpu().numpy())

    def _ran(self, order: Layer | Rest, begun_s: float, hold_s: float, logits: np.ndarray | None) -> None:
        if self._plan.device != "cpu":
            import torch

            torch.cuda.synchronize()
        # A queue of a GPU hides the messages between two steps; so the time counts from when this step could run.
        end_s = sleep_until(order.due_s + hold_s, lambda: None)
        late_s = end_s - order.due_s - hold_s
        self._desk.say(Ran(order.batch, order.turn, begun_s, end_s, late_s, logits))

    def _handed_over(self, header: dict[str, Any], payload: bytes) -> None:
        import torch

        key = header["batch"], header["turn"]
        if header["version"] != self._stage.version:
            what = f"The activation of batch {header['batch']}"
            self._desk.say(Denied(str(MixedVersions(what, header["version"], self._stage.version))))
            return
        rows = torch.frombuffer(bytearray(payload), dtype=torch.float32).view(-1, self._plan.model.shape.hidden)
        with self._changed:
            self._handed[key] = list(rows.to(self._plan.device).split(header["sizes"]))
            self._changed.notify_all()

    def _caches_of(self, key: Key) -> list[KvCache]:
        if key not in self._caches:
            plan = self._plan
            self._caches[key] = [KvCache(plan.model.shape, plan.capacity, plan.device) for _ in plan.batches[key[0]]]
        return self._caches[key]

    # ---- caches, and what follows

    def _give(self, batch: int, turn: int, node: int) -> None:
        for request, cache in enumerate(self._caches_of((batch, turn))):
            layers = cache.layers()
            part = cache.export(layers[0], len(layers))
            header = {
                "batch": batch, "turn": turn, "request": request, "version": part.version, "first": part.first,
                "shape": list(part.rows.shape),
            }  # fmt: skip
            self._mail.send(node, CACHES, header, part.rows.data.cast("B"))

    def _part(self, header: dict[str, Any], payload: bytes) -> None:
        rows = np.frombuffer(payload, dtype=np.float32).reshape(header["shape"])
        with self._changed:
            cache = self._caches_of((header["batch"], header["turn"]))[header["request"]]
            cache.insert(KvPart(header["version"], header["first"], rows))
            self._changed.notify_all()

    def _decode(self, order: Decode) -> None:
        every = list(range(self._plan.model.shape.layers))
        if not self._plan.computes:
            for block in range(len(self._arrived)):
                self._load(block)
        with self._changed:
            caches = [cache for key in order.batches for cache in self._caches_of(key)]
            self._changed.wait_for(lambda: self._over or all(cache.layers() == every for cache in caches))
        chosen, steps = [[token] for tokens in order.tokens for token in tokens], []
        for _ in range(order.count):
            logits = self._stage.logits(forward([self._stage], chosen, caches)).cpu()
            steps.append(logits.numpy())
            chosen = logits.argmax(-1, keepdim=True).tolist()
        told = iter(np.stack(steps, axis=1) if steps else np.empty((len(chosen), 0, 0)))
        self._desk.say(Said(tuple(tuple(next(told) for _ in tokens) for tokens in order.tokens)))


def _memory(desk: Desk, plan: InstancePlan) -> Blocks:
    """Memory for all blocks, made and touched before anything arrives."""
    sizes = tuple(block.size for block in plan.model.blocks)
    blocks: Blocks | None = desk.kept.get("instance")
    if blocks is None or blocks.sizes != sizes:
        blocks = desk.kept["instance"] = Blocks(sizes)
        if plan.device != "cpu":
            pin(blocks.memory)
    blocks.clear()
    return blocks
