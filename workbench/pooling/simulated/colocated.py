"""GPUs that do both, prompts and decoding by turns, with either first: what Aegaeon keeps apart, in SimPy."""

from collections import deque
from typing import Literal

import numpy as np

from workbench.pooling.model.checking import checked
from workbench.pooling.model.lowered import (
    COLD,
    DONE,
    HOST_COLUMNS,
    ROUND_COLUMNS,
    SWITCH_COLUMNS,
    TURN_COLUMNS,
    Lowered,
    Outcome,
)
from workbench.pooling.policy import fill_quotas
from workbench.pooling.simulated.gpu import Process
from workbench.pooling.simulated.people import Request
from workbench.pooling.simulated.steps import Steps
from workbench.queueing.simulated import Clock

First = Literal["prompts", "decoding"]
"""*prompts*: a prompt that waits is taken up before anything else, also between two steps of a turn; *decoding*: they
wait until nobody decodes."""

_ARRIVES, _WORKS = 2, 3


def simulate_colocated(lowered: Lowered, first: First) -> Outcome:
    """What becomes of the requests where every GPU does both.

    A request goes to the GPU with the fewest requests, the first of them. Turns have the quotas of Algorithm 2, over
    the models that decode at the start of a round. KV caches stay where they are and fit; nothing is prefetched.

    Parameters:
        lowered: the run; of its pool only the number of instances counts, of its rules the quotas.
        first: what goes first.
    """
    lowered = checked(lowered)
    place = _Place(lowered, first)
    place.run()
    people, gpus, nan = place.requests, place.gpus, float("nan")
    made = np.array([len(one.token_s) for one in people], np.int64)
    columns = {name: [getattr(one, name) for one in people] for name in ("finish_s", "wait_s", "prefill_s", "decode_s")}
    where = np.array([one.prefill_gpu for one in people], np.int64)
    nothing = np.zeros(len(people))
    return Outcome(
        status=np.array([one.status for one in people], np.int8),
        first_token_s=np.array([one.token_s[0] if one.token_s else nan for one in people]),
        made=made,
        prefill_instance=where,
        decode_instance=where.copy(),
        **{name: np.array(values, float) for name, values in columns.items()},
        moved_s=nothing,
        waited_s=nothing.copy(),
        token_s=np.array([time_s for one in people for time_s in one.token_s], float),
        token_at=np.concatenate([[0], np.cumsum(made)]),
        busy_s=np.array([gpu.busy_s for gpu in gpus]),
        switching_s=np.array([gpu.switching_s for gpu in gpus]),
        switches=np.array(place.switches, float).reshape(-1, len(SWITCH_COLUMNS)),
        turns=np.array(place.turns, float).reshape(-1, len(TURN_COLUMNS)),
        rounds=np.empty((0, len(ROUND_COLUMNS))),
        host=np.empty((0, len(HOST_COLUMNS))),
    )


class _Gpu:
    def __init__(self, place: "_Place", index: int):
        self.place, self.index = place, index
        self.waiting: deque[Request] = deque()
        self.decoding: list[Request] = []
        self.resident = -1
        self.busy_s = self.switching_s = 0.0
        self.work = place.clock.event()
        place.clock.process(self._live())

    @property
    def inside(self) -> int:
        return len(self.waiting) + len(self.decoding) + (self.busy is not None)

    busy: Request | None = None

    def _live(self) -> Process:
        while True:
            if self.waiting and (self.place.first == "prompts" or not self.decoding):
                yield from self._prompt()
            elif self.decoding:
                yield from self._round()
            else:
                self.work = self.place.clock.event()
                yield self.work
                yield self.place.clock.at(self.place.clock.now, _WORKS + 1)

    def _spend(self, seconds: float):
        return self.place.clock.at(self.place.clock.now + seconds, _WORKS)

    def _switch(self, model: int) -> Process:
        if self.resident == model:
            return
        models, begun_s = self.place.models, self.place.clock.now
        seconds = float(models.weight_bytes[model] / models.load_bytes_per_s[model])
        yield self._spend(seconds)
        self.resident = model
        self.switching_s += seconds
        row = (begun_s, self.place.clock.now, self.index, model, COLD, float(models.weight_bytes[model]))
        self.place.switches.append(row)

    def _prompt(self) -> Process:
        clock = self.place.clock
        request = self.busy = self.waiting.popleft()
        begun_s = clock.now
        yield from self._switch(request.model)
        ready_s = clock.now
        request.wait_s = ready_s - request.arrival_s
        seconds = self.place.steps.prompt_s(request.model, request.prompt)
        yield self._spend(seconds)
        self.busy, request.prefill_s = None, seconds
        self.busy_s += seconds
        request.token_s.append(clock.now)
        self.place.turns.append((begun_s, ready_s, clock.now, self.index, request.model, 0.0, 1, 0))
        if request.output > 1:
            self.decoding.append(request)
        else:
            request.status, request.finish_s = DONE, clock.now

    def _round(self) -> Process:
        """One round of turns; a prompt that comes ends it where prompts go first."""
        rules, steps, models = self.place.rules, self.place.steps, self.place.models
        kinds = sorted({request.model for request in self.decoding})
        batches = {model: [request for request in self.decoding if request.model == model] for model in kinds}
        step_s = [steps.step_s(m, sum(r.tokens for r in batch), len(batch)) for m, batch in batches.items()]
        quotas = np.empty(len(kinds))
        switches_s = float(models.assumed_s[kinds].sum())
        fill_quotas(np.array(step_s), rules.tbt_s, switches_s, rules.most_s, rules.floor, quotas)
        for model, quota_s in zip(kinds, quotas.tolist(), strict=True):
            yield from self._turn(batches[model], model, quota_s)
            if self.waiting and self.place.first == "prompts":
                return

    def _turn(self, batch: list[Request], model: int, quota_s: float) -> Process:
        clock, count, tokens = self.place.clock, len(batch), 0
        begun_s = clock.now
        yield from self._switch(model)
        ready_s = clock.now
        while batch and (tokens == 0 or clock.now - ready_s < quota_s):
            seconds = self.place.steps.step_s(model, sum(request.tokens for request in batch), len(batch))
            yield self._spend(seconds)
            self.busy_s += seconds
            tokens += len(batch)
            for request in list(batch):
                request.token_s.append(clock.now)
                request.decode_s += seconds
                if len(request.token_s) >= request.output:
                    request.status, request.finish_s = DONE, clock.now
                    batch.remove(request)
                    self.decoding.remove(request)
            if self.waiting and self.place.first == "prompts":
                break
        self.place.turns.append((begun_s, ready_s, clock.now, self.index, model, quota_s, count, tokens))


class _Place:
    def __init__(self, lowered: Lowered, first: First):
        asked, self.models, pool, self.rules = lowered
        self.first, self.clock, self.steps = first, Clock(), Steps(self.models, self.rules)
        self.switches: list[tuple] = []
        self.turns: list[tuple] = []
        self.requests = Request.all_of(asked)
        self.gpus = [_Gpu(self, index) for index in range(pool.node.size)]
        self.clock.process(self.clock.arrivals(asked.arrival_s, _ARRIVES, self._arrive))

    def run(self) -> None:
        """Let everything happen."""
        self.clock.run()

    def _arrive(self, number: int) -> None:
        request = self.requests[number]
        gpu = min(self.gpus, key=lambda gpu: gpu.inside)
        request.prefill_gpu = gpu.index
        gpu.waiting.append(request)
        if not gpu.work.triggered:
            gpu.work.succeed()
