"""Whole requests in SimPy: instances that work on their first batch, prompts first, until all of that is done."""

import numpy as np
import simpy

from workbench.pooling.model.lowered import COLD, DONE, FAILED, REJECTED, Lowered
from workbench.pooling.policy import AHEAD_TO_RUN, RUN, place_run
from workbench.pooling.policy.names import RUNS, SHARED, SHORTEST
from workbench.pooling.simulated.gpu import Process
from workbench.pooling.simulated.people import NOWHERE, ON_GPU, Batch, Request
from workbench.pooling.simulated.steps import Steps
from workbench.queueing.simulated import Clock

ARRIVES = 2


class Instance:
    """One GPU that serves whole requests.

    Attributes:
        batches: what it is given, in the order in which it works on them.
        front: the batch it works on.
        tail_model: of the last batch that it was given. active_s: when it last began a step or a switch.
    """

    def __init__(self, cluster: "Cluster", index: int):
        self.cluster, self.index = cluster, index
        self.batches: list[Batch] = []
        self.front: Batch | None = None
        self.tail_model, self.active_s = -1, 0.0
        self.resident = -1
        self.busy_s = self.switching_s = 0.0
        self._turn: list = []
        self._worked_s = 0.0
        self._rouse: simpy.Event | None = None
        cluster.clock.process(self._live())

    def rouse(self) -> None:
        """Work has come."""
        if self._rouse is not None and not self._rouse.triggered:
            self._rouse.succeed()

    def last(self) -> Batch | None:
        """The last batch that has requests."""
        return next((batch for batch in reversed(self.batches) if batch.requests), None)

    def put(self, batch: Batch | None, request: Request) -> None:
        """Put a request into a batch, or into a new one at the end."""
        if batch is None:
            batch = Batch(request.model)
            self.batches.append(batch)
            self.tail_model = request.model
        batch.requests.append(request)
        request.prefill_gpu = self.index

    def sort(self) -> None:
        """The batch with the least remaining time first."""
        self.batches.sort(key=self._remaining_s)

    def _remaining_s(self, batch: Batch) -> float:
        steps = self.cluster.steps
        waiting = [request for request in batch.requests if request.kv != ON_GPU]
        if waiting:
            total = 0.0
            for request in waiting:
                total += steps.prompt_s(batch.model, request.tokens)
            return total
        if not batch.requests:
            return 0.0
        context = sum(request.tokens for request in batch.requests)
        longest = max(request.output - len(request.token_s) for request in batch.requests)
        return longest * steps.step_s(batch.model, context, len(batch.requests))

    def _live(self) -> Process:
        clock, rules = self.cluster.clock, self.cluster.rules
        while True:
            self._change_front()
            batch = self.front
            if batch is None:
                self._rouse = clock.event()
                yield self._rouse
                self._rouse = None
            elif rules.system != SHARED and self.resident != batch.model:
                yield from self._switch(batch.model)
            else:
                yield from self._work(batch)
                if rules.system == SHARED and self.batches[-1] is not batch:
                    self.batches.remove(batch)
                    self.batches.append(batch)
            yield clock.at(clock.now, self.cluster.acts + self.index)

    def _change_front(self) -> None:
        now = self.cluster.clock.now
        if self.front is not None and not self.front.requests:
            self._note(self._worked_s)
            self.front = None
        self.batches = [batch for batch in self.batches if batch.requests]
        first = self.batches[0] if self.batches else None
        if first is self.front:
            return
        if self.front is not None:
            self._note(now)
            if self.cluster.rules.system == SHORTEST:
                for request in self.front.requests:
                    request.kv = NOWHERE
        self.front = first
        self._worked_s = now
        if first is not None:
            self._turn = [now, now, now, self.index, first.model, 0.0, len(first.requests), 0]

    def _note(self, now: float) -> None:
        if self.cluster.rules.system != SHARED:
            self._turn[2] = now
            self.cluster.turns.append(tuple(self._turn))

    def _switch(self, model: int) -> Process:
        clock, models = self.cluster.clock, self.cluster.models
        begun_s = self.active_s = clock.now
        self.resident = -1
        seconds = float(models.weight_bytes[model]) / float(models.load_bytes_per_s[model])
        yield clock.at(begun_s + seconds, self.cluster.ends + self.index)
        self.resident = model
        self.switching_s += clock.now - begun_s
        row = (begun_s, clock.now, self.index, model, COLD, float(models.weight_bytes[model]))
        self.cluster.switches.append(row)

    def _work(self, batch: Batch) -> Process:
        """The first waiting prompt if it fits, else a token for everybody whose prompt is done."""
        clock, steps = self.cluster.clock, self.cluster.steps
        self.active_s = clock.now
        running = [request for request in batch.requests if request.kv == ON_GPU]
        waiting = next((request for request in batch.requests if request.kv != ON_GPU), None)
        used = sum(request.blocks for request in running)
        if waiting is not None and used + waiting.blocks <= int(self.cluster.models.capacity[batch.model]):
            if not waiting.begun:
                waiting.begun, waiting.wait_s = True, clock.now - waiting.arrival_s
            seconds = steps.prompt_s(batch.model, waiting.tokens)
            served = [waiting]
        else:
            seconds = steps.step_s(batch.model, sum(request.tokens for request in running), len(running))
            served, waiting = running, None
        yield clock.at(clock.now + seconds, self.cluster.ends + self.index)
        self.busy_s += seconds
        self._worked_s = clock.now
        for request in served:
            if request is waiting:
                request.kv, request.decode_gpu = ON_GPU, self.index
                request.prefill_s += seconds
            else:
                request.decode_s += seconds
            if request.output > 0:
                request.token_s.append(clock.now)
                self._turn[7] += 1
            if len(request.token_s) >= request.output:
                batch.requests.remove(request)
                request.status, request.finish_s = DONE, clock.now


class Cluster:
    """Instances that serve whole requests, and who gives them any."""

    def __init__(self, lowered: Lowered):
        self.requests_in, self.models, self.pool, self.rules = lowered
        self.clock, self.steps = Clock(), Steps(self.models, self.rules)
        size = self.pool.node.size
        self.ends, self.acts = ARRIVES + 1, ARRIVES + 1 + size
        self.switches: list[tuple] = []
        self.turns: list[tuple] = []
        self.rounds: list[tuple] = []
        self.host: list[tuple] = []
        self.gpus = [Instance(self, index) for index in range(size)]
        self.requests = Request.all_of(self.requests_in)
        self._oldest = 0

    def run(self) -> None:
        """Let everything happen."""
        self.clock.process(self.clock.arrivals(self.requests_in.arrival_s, ARRIVES, self._arrive))
        self.clock.run()

    def _arrive(self, number: int) -> None:
        self._forget_late()
        request = self.requests[number]
        request.blocks = self.steps.blocks(request.prompt + request.output + AHEAD_TO_RUN)
        nowhere = self.rules.system == SHARED and self.models.place[request.model] < 0
        if self.requests_in.refused[number] or request.blocks > self.models.capacity[request.model] or nowhere:
            request.status = REJECTED
            return
        instance = self._place(request)
        if self.rules.system == SHORTEST:
            for each in self.gpus:
                each.sort()
        instance.rouse()

    def _place(self, request: Request) -> Instance:
        model = request.model
        if self.rules.system == SHARED:
            instance = self.gpus[int(self.models.place[model])]
            instance.put(next((batch for batch in instance.batches if batch.model == model), None), request)
            return instance
        near = [gpu for gpu in self.gpus if self.pool.node[gpu.index] == self.models.home[model]]
        if self.rules.system == RUNS:
            lasts = [gpu.last() for gpu in near]
            tails = [gpu.tail_model if b is None else b.model for gpu, b in zip(near, lasts, strict=True)]
            runs = [0 if batch is None else len(batch.requests) for batch in lasts]
            active_s = np.array([gpu.active_s for gpu in near])
            place = place_run(np.array(tails), np.array(runs), active_s, 0, len(near), model)
            near[place].put(lasts[place] if tails[place] == model else None, request)
            return near[place]
        for gpu in near:
            for batch in gpu.batches:
                if batch.model == model and 0 < len(batch.requests) < RUN:
                    gpu.put(batch, request)
                    return gpu
        instance = min(near, key=lambda gpu: sum(bool(batch.requests) for batch in gpu.batches))
        instance.put(None, request)
        return instance

    def _forget_late(self) -> None:
        """Requests that have waited too long for their prompt to begin fail."""
        while self._oldest < len(self.requests):
            request = self.requests[self._oldest]
            if request.arrival_s + self.rules.give_up_s > self.clock.now:
                return
            if request.status == 0 and not request.begun:
                for batch in self.gpus[request.prefill_gpu].batches:
                    if request in batch.requests:
                        batch.requests.remove(request)
                request.status = FAILED
            self._oldest += 1
