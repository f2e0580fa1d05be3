"""GPUs that decode by turns (Algorithm 2)."""

import numpy as np

from workbench.pooling.policy import AHEAD_TO_JOIN, AHEAD_TO_RUN, fill_quotas
from workbench.pooling.policy.names import AFTER_FIRST_STEP
from workbench.pooling.simulated.gpu import Gpu, Process
from workbench.pooling.simulated.people import CALLED, IN_HOST, ON_GPU, Batch, Request


class TurnGpu(Gpu):
    """A work list of batches that take turns."""

    def __init__(self, world, index: int):
        self.work_list: list[Batch] = []
        self.last: Batch | None = None
        self.turn: Batch | None = None
        self.asked = self.ending = False
        super().__init__(world, index)

    def live(self) -> Process:
        """Rounds of turns."""
        yield from self.rest()
        while True:
            batch = self._next_turn()
            if batch is not None:
                yield from self._take_turn(batch)
                continue
            self._pack()
            if not self.work_list:
                yield from self.rest()
            elif all(self._is_full(batch) for batch in self.work_list):
                yield from self.rest(self._waking_s())
            else:
                self._assign()

    def next_model(self) -> int:
        """The model of the first turn left in this round with another one than the resident."""
        left = self.work_list[self.work_list.index(self.turn) + 1 :]
        return next((b.model for b in left if b.in_round and b.requests and b.model != self.resident), -1)

    def forget(self, size: int) -> None:
        """KV cache that is no longer here."""
        self.used_bytes -= size

    def fits(self, batch: Batch, request: Request, ahead: int = AHEAD_TO_JOIN) -> bool:
        """Whether a request may join a batch."""
        blocks = self.world.steps.blocks(request.tokens + ahead)
        return self._blocks(batch, ahead) + blocks <= int(self.models.capacity[batch.model])

    def enter(self, batch: Batch | None, request: Request) -> None:
        """Put a request into a batch, or into a new one that waits for the next round."""
        if batch is None:
            batch = Batch(request.model)
            self.work_list.append(batch)
        batch.requests.append(request)
        request.decode_gpu = self.index
        if batch is self.turn and self.asked and not self.ending:
            self.call(request)
            self.next_in()
        self.rouse()

    def _blocks(self, batch: Batch, ahead: int) -> int:
        return sum(self.world.steps.blocks(request.tokens + ahead) for request in batch.requests)

    def _next_turn(self) -> Batch | None:
        begin = 0 if self.last is None else self.work_list.index(self.last) + 1
        for batch in self.work_list[begin:]:
            if batch.in_round and batch.requests and not self._is_full(batch):
                return batch
        return None

    def _is_full(self, batch: Batch) -> bool:
        rules = self.rules
        if rules.buffer_s == float("inf"):
            return False
        leads = (r.token_s[0] + len(r.token_s) * rules.tbt_s - self.clock.now for r in batch.requests)
        return all(lead >= rules.buffer_s for lead in leads)

    def _waking_s(self) -> float:
        rules = self.rules
        leads = (r.token_s[0] + len(r.token_s) * rules.tbt_s for batch in self.work_list for r in batch.requests)
        return min(lead - rules.buffer_s + rules.tbt_s for lead in leads)

    def _pack(self) -> None:
        """All requests in order of arrival, first fit into batches of one model, these in order of their models."""
        everybody = sorted((r for batch in self.work_list for r in batch.requests), key=lambda r: r.number)
        batches: list[Batch] = []
        for request in everybody:
            home = next((b for b in batches if b.model == request.model and self.fits(b, request)), None)
            if home is None:
                home = Batch(request.model)
                batches.append(home)
            home.requests.append(request)
        self.work_list, self.last = sorted(batches, key=lambda batch: batch.model), None

    def _assign(self) -> None:
        """Give every batch its quota."""
        rules, steps, quotas = self.rules, [], np.empty(len(self.work_list))
        for batch in self.work_list:
            context = sum(request.tokens for request in batch.requests)
            steps.append(self.world.steps.step_s(batch.model, context, -1 if rules.blind else len(batch.requests)))
        switches_s = 0.0
        for model in dict.fromkeys(batch.model for batch in self.work_list):
            switches_s += float(self.models.assumed_s[model])
        pace = fill_quotas(np.array(steps), rules.tbt_s, switches_s, rules.most_s, rules.floor, quotas)
        whole_s = 0.0
        for batch, quota_s in zip(self.work_list, quotas.tolist(), strict=True):
            batch.quota_s, batch.in_round = quota_s, True
            whole_s += quota_s
        self.world.rounds.append((self.clock.now, self.index, len(quotas), pace, switches_s, whole_s))

    def _take_turn(self, batch: Batch) -> Process:
        begun_s = self.ready_s = self.clock.now
        self.turn, self.asked, self.ending = batch, False, False
        requests, tokens, clock_s = len(batch.requests), 0, None
        for other in self.work_list:
            if other is not batch:
                self._all_leave(other)
        if self.rules.overlap:
            self._call_all(batch)
        while True:
            if not self.rules.overlap and self.outs and not (self.asked and self.resident == batch.model):
                yield from self.rest()
                continue
            if self.resident != batch.model:
                yield from self.switch(batch.model)
                continue
            if not self.asked:
                self._call_all(batch)
            if not batch.requests:
                break
            if clock_s is not None and (self.clock.now - clock_s >= batch.quota_s or self._is_full(batch)):
                break
            self._make_room(batch)
            ready = [request for request in batch.requests if request.kv == ON_GPU]
            if not ready or (not self.rules.overlap and len(ready) < len(batch.requests)):
                yield from self.rest()
                continue
            if clock_s is None and self.rules.clock != AFTER_FIRST_STEP:
                clock_s = self.clock.now
            yield from self._step(batch, ready)
            tokens += len(ready)
            if clock_s is None:
                clock_s = self.clock.now
            yield self.decides()
        self.ending = True
        for request in self.called:
            request.kv = IN_HOST
        self.called.clear()
        while self.coming is not None:
            yield from self.rest()
        if any(other.requests for other in self.work_list if other is not batch):
            self._all_leave(batch)
        row = (begun_s, self.ready_s, self.clock.now, self.index, batch.model, batch.quota_s, requests, tokens)
        self.world.turns.append(row)
        self.last, self.turn = batch, None

    def _all_leave(self, batch: Batch) -> None:
        for request in batch.requests:
            if request.kv == ON_GPU:
                self.send_away(request)

    def _call_all(self, batch: Batch) -> None:
        self.asked = True
        for request in batch.requests:
            self.call(request)
        self.next_in()

    def _make_room(self, batch: Batch) -> None:
        """Where a batch has outgrown the KV cache, its last requests become a batch that waits for the next round."""
        capacity = int(self.models.capacity[batch.model])
        if self._blocks(batch, AHEAD_TO_RUN) <= capacity:
            return
        other = Batch(batch.model)
        self.work_list.append(other)
        while len(batch.requests) > 1 and self._blocks(batch, AHEAD_TO_RUN) > capacity:
            request = batch.requests.pop()
            other.requests.insert(0, request)
            if request.kv == ON_GPU:
                self.send_away(request)
            elif request.kv == CALLED:
                self.called.remove(request)
                request.kv = IN_HOST

    def _step(self, batch: Batch, ready: list[Request]) -> Process:
        """One token for everybody whose KV cache is here."""
        seconds = self.world.steps.step_s(batch.model, sum(request.tokens for request in ready), len(ready))
        yield self.spend(seconds)
        self.busy_s += seconds
        self.since_switch_s += seconds
        block_bytes = int(self.models.block_bytes[batch.model])
        for request in ready:
            request.decode_s += seconds
            held = self.world.steps.blocks(request.tokens)
            request.token_s.append(self.clock.now)
            if len(request.token_s) >= request.output:
                self.used_bytes -= held * block_bytes
                batch.requests.remove(request)
                self.world.finish(request)
            else:
                self.used_bytes += (self.world.steps.blocks(request.tokens) - held) * block_bytes
