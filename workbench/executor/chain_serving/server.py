"""The task of one server: passes arrive after their round trip, wait for their turn, and are computed for real."""

import heapq
import itertools
import threading
import time
from collections.abc import Sequence

import numpy as np

from workbench.executor.chain_serving.orders import VERSION, Close, End, Pass, Passed, ServerPlan, ServerReport, Session
from workbench.executor.clock import sleep_until
from workbench.executor.desk import Desk
from workbench.executor.transformer import KvCache, Stage, keeps_bits, make_weights, teacher_forced

READY = "ready"


def serve_blocks(desk: Desk, plan: ServerPlan) -> ServerReport:
    """Host some blocks, compute what comes, and count the slots that sessions take.

    A pass is there one round trip after it was sent: the ways to a server and back are waited for together. It is
    computed at once and its result held back until it has taken as long as it should.
    """
    return _Server(desk, plan).run()


class _Server:
    def __init__(self, desk: Desk, plan: ServerPlan):
        self._desk, self._plan = desk, plan
        self._stage = Stage(plan.shape)
        self._stage.load(_weights(plan), VERSION)
        keeps_bits(plan.shape)  # the first pass of a process costs tens of milliseconds more
        self._due: list[tuple[float, int, Pass | Close | End]] = []
        self._count, self._changed = itertools.count(), threading.Condition()
        self._caches: dict[Session, KvCache] = {}
        self._taken: dict[Session, int] = {}
        self._most = self._passes = 0
        self._held_s, self._free_s = 0.0, time.monotonic()
        desk.on_word(self._arrive)
        desk.say(READY)

    def run(self) -> ServerReport:
        begun_s = time.process_time()
        while True:
            match self._next():
                case [(_, _, End())]:
                    break
                case [(_, _, Close(session))]:
                    self._close(session)
                case due:
                    self._compute(due)
        busy_s = time.process_time() - begun_s
        return ServerReport(self._most, len(self._taken), self._passes, self._held_s, busy_s)

    def _arrive(self, word: Pass | Close | End) -> None:
        """Called by the listening thread; a session's slots are freed before any pass is looked at."""
        due_s = word.sent_s + _seconds(word.work, self._plan.trip_s) if isinstance(word, Pass) else 0.0
        with self._changed:
            heapq.heappush(self._due, (due_s, next(self._count), word))
            self._changed.notify()

    def _next(self) -> list[tuple[float, int, Pass | Close | End]]:
        """Wait for what is due next: one thing, or all passes for the same blocks that may be computed together."""
        with self._changed:
            while not self._due or self._due[0][0] > time.monotonic():
                self._changed.wait(max(0.0, self._due[0][0] - time.monotonic()) if self._due else None)
            first = heapq.heappop(self._due)
            if not (self._plan.batched and isinstance(first[2], Pass)):
                return [first]
            now_s = time.monotonic()
            same = first[2].first, first[2].blocks
            beside = [one for one in self._due if one[0] <= now_s and (one[2].first, one[2].blocks) == same]
            self._due = [one for one in self._due if one not in beside]
            heapq.heapify(self._due)
        return [first, *sorted(beside)]

    def _compute(self, due: Sequence[tuple[float, int, Pass]]) -> None:
        import torch

        passes = [word for _, _, word in due]
        begun_s, blocks = time.monotonic(), passes[0].blocks
        late_s = [begun_s - max(due_s, self._free_s) for due_s, _, _ in due]
        hold_s = blocks * self._together_s(passes)
        last = passes[0].first + blocks == self._plan.shape.layers
        with torch.inference_mode():
            if passes[0].first == 0:
                hidden = self._stage.embed([word.tokens for word in passes])
            else:
                hidden = [torch.from_numpy(word.hidden) for word in passes]
            caches = [self._cache(word) for word in passes]
            hidden = self._stage.run(passes[0].first, blocks, hidden, caches)
            rows = self._stage.logits(hidden).numpy() if last else [one.numpy() for one in hidden]
        self._free_s = sleep_until(begun_s + hold_s, lambda: None)
        self._held_s += self._free_s - begun_s
        self._passes += len(passes)
        for word, before_s, row in zip(passes, late_s, rows, strict=True):
            late = max(0.0, before_s) + self._free_s - begun_s - hold_s
            made = (None, row) if last else (row, None)
            self._desk.say(Passed(word.session, self._free_s, late, hold_s, *made))

    def _together_s(self, passes: Sequence[Pass]) -> float:
        """Seconds of a block for these passes: prompts add up, weights are read once for all further tokens."""
        fixed_s, prompt_s, token_s = self._plan.block_s
        prompts = sum(word.work[0] * fixed_s + word.work[1] * prompt_s for word in passes)
        return prompts + max(word.work[2] for word in passes) * token_s

    def _cache(self, word: Pass) -> KvCache:
        """The session's cache; its first pass takes slots, and memory that is not there is never handed out."""
        if word.opens:
            self._taken[word.session] = word.blocks
            used = sum(self._taken.values())
            if used > self._plan.slots:
                raise MemoryError(f"sessions take {used} cache slots of {self._plan.slots}")
            self._most = max(self._most, used)
            self._caches[word.session] = KvCache(self._plan.shape, self._plan.capacity)
        return self._caches[word.session]

    def _close(self, session: Session) -> None:
        """Free what a session has; passes of it that are still on their way are not computed any more."""
        self._taken.pop(session, None)
        self._caches.pop(session, None)
        with self._changed:
            self._due = [one for one in self._due if not (isinstance(one[2], Pass) and one[2].session == session)]
            heapq.heapify(self._due)


def right_logits(
    desk: Desk, shape, seed: int, texts: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]
) -> tuple[bool, list[np.ndarray]]:
    """The task of the process that knows the right answers: whether this machine keeps the bits, and for each text
    (prompt, output) the logits after the prompt and on."""
    stage = Stage(shape)
    stage.load(make_weights(shape, seed, 0, shape.layers), VERSION)
    return keeps_bits(shape), [teacher_forced([stage], prompt, said).logits for prompt, said in texts]


def _weights(plan: ServerPlan) -> dict[str, np.ndarray]:
    made = make_weights(plan.shape, plan.seed, plan.first, plan.blocks)
    if plan.fault is not None:
        ours, theirs = (f"model.layers.{block}." for block in (plan.fault.block, plan.fault.other))
        names = {name: name.replace(ours, theirs) for name in made if name.startswith(ours)}
        for name, other in names.items():
            made[name], made[other] = made[other], made[name]
    return made


def _seconds(work: tuple[float, float, float], each_s: tuple[float, float, float]) -> float:
    return sum(amount * seconds for amount, seconds in zip(work, each_s, strict=True))
