"""One GPU: which model it holds, how it switches, and the KV caches that come and go."""

from collections import deque
from collections.abc import Generator
from typing import TYPE_CHECKING

import simpy

from workbench.pooling.model.lowered import COLD, HIDDEN, PARTLY
from workbench.pooling.policy import may_come
from workbench.pooling.policy.names import IDEAL, PREFETCH
from workbench.pooling.simulated.people import CALLED, COMING, IN_HOST, ON_GPU, Request
from workbench.pooling.simulated.transfers import FETCH, IN, LOAD, OUT, Transfer

if TYPE_CHECKING:
    from workbench.pooling.simulated.world import World

Process = Generator[simpy.Event, object, None]


class Gpu:
    """What prefill and decode GPUs have in common."""

    def __init__(self, world: "World", index: int):
        self.world, self.index = world, index
        self.clock, self.models, self.rules = world.clock, world.models, world.rules
        self.node = int(world.pool.node[index])
        self.host = world.hosts[self.node]
        self.resident = self.target = -1
        self.fetched, self.fetch, self.fetch_done = -1, None, False
        self.since_switch_s = self.busy_s = self.switching_s = 0.0
        self.ready_s = 0.0
        self.leaving: deque[Request] = deque()
        self.called: deque[Request] = deque()
        self.going: Request | None = None
        self.coming: Request | None = None
        self.used_bytes = 0
        self._rouse: simpy.Event | None = None
        self._landed: simpy.Event | None = None
        self.clock.process(self.live())

    def live(self) -> Process:
        """What the GPU does all its life."""
        raise NotImplementedError

    def next_model(self) -> int:
        """Another model that will be wanted after the resident one, -1 for none."""
        raise NotImplementedError

    # Waiting and time.

    def rouse(self) -> None:
        """Let a GPU that rests look again."""
        if self._rouse is not None and not self._rouse.triggered:
            self._rouse.succeed()

    def rest(self, until_s: float = float("inf")) -> Process:
        """Wait until roused, or until an instant; then decide."""
        self._rouse = self.clock.event()
        if until_s < float("inf"):
            yield self._rouse | self.clock.at(until_s, self.world.ends + self.index)
        else:
            yield self._rouse
        self._rouse = None
        yield self.decides()

    def decides(self) -> simpy.Event:
        """The moment of this instant at which the GPU decides."""
        return self.clock.at(self.clock.now, self.world.acts + self.index)

    def spend(self, seconds: float) -> simpy.Event:
        """The end of something that takes so long."""
        return self.clock.at(self.clock.now + seconds, self.world.ends + self.index)

    @property
    def outs(self) -> int:
        """KV caches that are leaving or wait to."""
        return len(self.leaving) + (self.going is not None)

    # Weights.

    def switch(self, model: int) -> Process:
        """Make a model the resident one, then decide."""
        begun_s, rules = self.clock.now, self.rules
        self.resident, self.target = -1, model
        if rules.prefetch == IDEAL:
            whole_s = float(self.models.weight_bytes[model]) / float(self.models.load_bytes_per_s[model])
            left_s = max(rules.least_switch_s, whole_s - self.since_switch_s)
            kind = COLD if left_s == whole_s else PARTLY if left_s > rules.least_switch_s else HIDDEN
            yield self.spend(left_s)
        elif self.fetched == model:
            kind = HIDDEN if self.fetch_done else PARTLY
            if not self.fetch_done:
                self._landed = self.clock.event()
                yield self._landed
            yield self.spend(rules.least_switch_s)
        else:
            if self.fetch is not None:
                self.host.stop(self.fetch)
            self.fetched, self.fetch = -1, None
            kind = COLD
            self._landed = self.clock.event()
            self._bring(model, LOAD)
            yield self._landed
        now = self.clock.now
        self.resident, self.target, self.fetched, self.fetch = model, -1, -1, None
        self.since_switch_s, self.ready_s = 0.0, now
        self.switching_s += now - begun_s
        weight_bytes = float(self.models.weight_bytes[model])
        self.world.switches.append((begun_s, now, self.index, model, kind, weight_bytes))
        if rules.prefetch == PREFETCH and (other := self.next_model()) >= 0 and self.models.after[model, other]:
            self.fetched, self.fetch_done = other, False
            self.fetch = self._bring(other, FETCH)
        yield self.decides()

    def _bring(self, model: int, kind: int) -> Transfer:
        rate = self.host.rate_of(model)
        landed = self._fetch_landed if kind == FETCH else self._weights_landed
        return self.host.start(self.index, kind, float(self.models.weight_bytes[model]), rate, landed)

    def _weights_landed(self) -> None:
        self._landed.succeed()

    def _fetch_landed(self) -> None:
        self.fetch_done, self.fetch = True, None
        if self._landed is not None and not self._landed.triggered:
            self._landed.succeed()

    # KV caches.

    def send_away(self, request: Request) -> None:
        """Send a request's KV cache to the host, behind those that leave before it."""
        request.kv, request.leaving = IN_HOST, True
        request.blocks = self.world.steps.blocks(request.tokens)
        self.leaving.append(request)
        self.next_out()

    def next_out(self) -> None:
        """Start the next KV cache out, unless one is going."""
        if self.going is None and self.leaving:
            request = self.going = self.leaving.popleft()
            request.from_s = self.clock.now
            self.world.note_host(self.node, request, request.blocks)
            self.host.start(self.index, OUT, self._bytes(request), self.world.pool.link_bytes_per_s, self._gone)

    def _gone(self) -> None:
        request, self.going = self.going, None
        request.leaving = False
        request.moved_s += self.clock.now - request.from_s
        self.forget(self._bytes(request))
        self.next_out()
        if request.decode_gpu >= 0:
            self.world.gpus[request.decode_gpu].next_in()
        self.next_in()
        self.rouse()

    def forget(self, size: int) -> None:
        """So many bytes of KV cache are no longer here; only GPUs that decode count."""

    def next_in(self) -> None:
        """Start the next KV cache in, unless one is coming or the first in line may not yet."""
        if self.coming is not None or not self.called:
            return
        request = self.called[0]
        room = int(self.models.capacity[request.model]) * int(self.models.block_bytes[request.model])
        size = self._bytes(request)
        if not may_come(request.leaving, self.used_bytes, size, room, self.outs > 0):
            return
        self.coming = self.called.popleft()
        request.kv, request.from_s = COMING, self.clock.now
        self.used_bytes += size
        self.host.start(self.index, IN, size, self.world.pool.link_bytes_per_s, self._come)

    def _come(self) -> None:
        request, self.coming = self.coming, None
        now = self.clock.now
        request.kv = ON_GPU
        request.moved_s += now - request.from_s
        if self.resident == request.model:
            request.waited_s += max(0.0, now - max(self.ready_s, request.from_s))
        self.world.note_host(self.node, request, -request.blocks)
        self.next_in()
        self.rouse()

    def call(self, request: Request) -> None:
        """Put a request's KV cache in line for the way here, if it is in the host."""
        if request.kv == IN_HOST:
            request.kv = CALLED
            self.called.append(request)

    def _bytes(self, request: Request) -> int:
        return request.blocks * int(self.models.block_bytes[request.model])
