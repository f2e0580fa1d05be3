"""An engine instance: a queue, the requests that run, KV blocks, and one step after the other."""

from collections import deque
from collections.abc import Callable
from math import isnan

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.lowered import DONE, Instances
from workbench.serving.simulated.blocks import Blocks
from workbench.serving.simulated.instants import Instants
from workbench.serving.simulated.log import Iteration, Log
from workbench.serving.simulated.prefix_cache import PrefixCache
from workbench.serving.simulated.ranks import RANK, join_first, join_last
from workbench.serving.simulated.request import Request
from workbench.serving.simulated.step import Step


class Instance:
    """One place that runs a model: a SimPy process that starts a step, waits for its end, and looks again."""

    keeps_kv = False
    """Whether KV of prompts that it has computed stays, for the row that takes its place."""
    awaits_others = False
    """Whether what others do at the instant at which a step ends may change the next one, though nobody waits."""

    def __init__(
        self, index: int, given: Instances, prefix_tokens: int, clock: Clock, instants: Instants, log: Log
    ):  # fmt: skip
        row = Instances(*(column[index].tolist() for column in given))
        self.index, self.clock, self.instants, self.log = index, clock, instants, log
        self.model, self.role, self.limit, self.slots = row.model, row.role, row.limit, row.slots
        self.budget, self.chunk, self.form, self.own_form = row.budget, row.chunk, row.form, row.form
        self.batch = row.batch
        self.reserve, self.whole, self.apart = bool(row.reserve), bool(row.whole), bool(row.apart)
        self.blocks = Blocks(row.blocks, row.block)
        self.prefixes = PrefixCache(row.cache, prefix_tokens)
        self.queue: deque[Request] = deque()
        self.running: list[Request] = []
        self.step: Step | None = None
        self.last = Iteration(index, -1, 0.0)  # before the first
        self.busy_s, self.failed_steps = 0.0, 0
        self.up, self.life = False, 0
        self.version, self.finishing = 0, False  # of its weights, and whether it drains since there is a newer one
        self.emptied: Callable[[], None] | None = None  # told when it takes no more requests and the last one is done
        self.helping = None  # the `Helping` by which steps may be shorter
        self.load = None  # the `Load` that brought its weights, in a cluster that changes its size
        self.router = None  # that gives it requests, from the first time on that it is up

    def recover(self, router, form: list[list[float]] | None = None) -> None:
        """Up from now on, with another step time if `form` is given; what waits from an earlier life is void."""
        self.up, self.form, self.router = True, form or self.own_form, router
        self.life += 1
        self.work = self.clock.event()
        self.clock.process(self._live(self.life))

    def fail(self) -> list[Request]:
        """Dead from now on: the step in progress is lost, and all requests leave without their KV."""
        self.up = False
        self.life += 1
        return self._lose()

    def switch(self, router) -> None:
        """Alone from now on, after a time as a member of a pipeline: all that runs loses its KV and queues here."""
        for request in self.running:
            request.moves += 1
        self.queue.extend(sorted(self._lose(), key=RANK))
        self.recover(router)

    def _lose(self) -> list[Request]:
        """The step in progress and all KV is lost; the requests leave."""
        self.failed_steps += self.step is not None
        if self.step and self.helping:
            self.helping.over(self.index, whole=False)
        self.step = None
        self.prefixes.clear()
        lost = self._take_all()
        for request in lost:
            self.blocks.take_back(request)
            request.forget()
        return lost

    def _take_all(self) -> list[Request]:
        """All requests leave, the running ones first."""
        requests = [*self.running, *self.queue]
        self.running.clear()
        self.queue.clear()
        return requests

    @property
    def outstanding(self) -> int:
        """Requests that queue or run here."""
        return len(self.queue) + len(self.running)

    @property
    def in_use(self) -> bool:
        """Whether any request has work or KV here."""
        return bool(self.outstanding)

    @property
    def is_done(self) -> bool:
        """Whether nothing that is here goes on here."""
        return not self.in_use

    @property
    def at_rest(self) -> bool:
        """Whether nothing will happen here of itself."""
        return not self.outstanding

    @property
    def requests(self) -> list[Request]:
        """Those that are outstanding."""
        return [*self.running, *self.queue]

    @property
    def prompt_tokens(self) -> int:
        """Tokens still to be prefilled of all requests here."""
        return sum(request.need - request.stored for request in self.requests if request.prefilling)

    @property
    def tokens_left(self) -> int:
        """Tokens still to be processed of all requests here."""
        return sum(request.tokens_left for request in self.requests)

    def fits(self, request: Request) -> bool:
        """Whether an empty instance could serve a request to its end."""
        return self.blocks.holding(request.most_stored) <= self.blocks.total

    def takes(self, request: Request) -> bool:
        """Whether the router may give a request to this instance now."""
        return self.up and self.outstanding < self.limit and self.fits(request)

    def lacks_blocks(self, request: Request) -> bool:
        """Whether a request would begin a batch here, for which KV on its way takes the blocks."""
        return False

    def give(self, request: Request) -> None:
        """A request joins the queue; an idle instance wakes up."""
        request.instance = self.index
        if request.version not in (-1, self.version):
            self.log.void(request)
            request.start_anew()
        join_last(self.queue, request)
        self.wake()

    def wake(self) -> None:
        """If no step goes on, one starts at this instant, or there is still nobody to take part in it."""
        if not self.work.triggered:
            self.work.succeed()

    def _live(self, life: int):
        """The process of one life, from a recovery to the next failure."""
        at, clock, ends, starts = self.clock.at, self.clock, self.instants.ends, self.instants.starts
        line, idle = self.router.lines[self.model], not self.outstanding
        while True:
            if idle:
                self.work = clock.event()
                yield self.work
            yield at(clock.now, starts + self.index)
            if life != self.life:
                return
            joinable = idle = False
            while not (joinable or idle):
                self.step = self._start()
                if self.step is None:
                    idle = True
                    continue
                if self.step.chunks and self.helping:
                    self.helping.begin(self.index, self.last.index + 1, self.step)
                yield at(clock.now + self.step.seconds, ends + self.index)
                if life != self.life:
                    return
                if self._end(self.step):
                    self.router.call()
                    self._tell_if_emptied()
                joinable = self.awaits_others or self.helping is not None or bool(line)

    def keep_no_kv(self) -> None:
        """KV that stayed here does so no longer; nobody has any where prompts and decoding are not apart."""

    def leave_kv(self) -> list[Request]:
        """Those whose KV stayed here."""
        return []

    def take_over(self, requests: list[Request]) -> list[Request]:
        """Of those whose KV is on this place, the ones that cannot be decoded here."""
        return requests

    def _tell_if_emptied(self) -> None:
        """Somebody has gone from here."""
        if not self.up and self.is_done:
            self.emptied()

    def _start(self) -> Step | None:
        """Blocks for those that go on, newcomers if all of these got theirs, and the step that follows, if any."""
        if self._grow() and not (self.whole and self.running):
            self._admit()
        return Step(self.running, self.budget, self.chunk, self.apart, self.form) if self.running else None

    def _grow(self) -> bool:
        """Every decode whose blocks are full takes one more, in order; False if the last one had to go for that."""
        calm = True
        for request in self.running:  # whoever goes is the last of them, so nobody else is passed over
            if request.stored == request.room and not request.prefilling:
                while not self.blocks.free:
                    self._evict()
                    calm = False
                if request.room:  # it did not go itself
                    self.blocks.give(request, 1)
        return calm

    def _evict(self) -> None:
        """The last request gives up its blocks and waits again, first of its rank in the queue."""
        request = self.running.pop()
        self.blocks.take_back(request)
        request.forget()
        request.evictions += 1
        join_first(self.queue, request)

    def _admit(self) -> None:
        """Newcomers from the head of the queue, while there is a slot and blocks enough for the first of them.

        For a lower rank, those of higher ranks go.
        """
        while self.queue:
            request = self.queue[0]
            blocks = self._newcomer_blocks(request)
            if len(self.running) < self.slots and blocks <= self.blocks.free:
                self.blocks.give(request, blocks)
                join_last(self.running, self.queue.popleft())
                request.start_from(self.prefixes.hit(request.prefix))
                request.version = self.version
                if isnan(request.wait_s):
                    request.wait_s = self.clock.now - request.arrival_s
            elif self.running and self.running[-1].rank > request.rank:
                self._evict()
            else:
                return

    def _newcomer_blocks(self, request: Request) -> int:
        """Blocks that a request takes on admission."""
        return self.blocks.holding(request.most_stored if self.reserve else request.need)

    def _end(self, step: Step) -> bool:
        """Tokens are stored and made; True if a request is done with that."""
        before, self.step = self.last, None
        if self.helping:
            self.helping.over(self.index, whole=True)
        self.last = self.log.iteration(self.index, self.clock.now)
        self.busy_s += step.seconds
        members = makers = step.decodes
        for request in step.decodes:
            request.stored += 1
        if step.chunks:
            prefilled = [request for request, tokens in step.chunks if request.store(tokens)]
            for request in prefilled:
                request.prefilled_on = self.index
                self.prefixes.keep(request.prefix)
            members = [*step.decodes, *prefilled]
            makers = [request for request in members if request.output]
        self.log.tokens(makers, self.last, before)
        done = [request for request in members if request.made == request.output]
        if self.load:
            self.load.helps(self.clock.now, [request for request in makers if request.made == 1], len(done))
        for request in done:
            self.running.remove(request)
            self.blocks.take_back(request)
            request.status, request.finish_s = DONE, self.clock.now
        return bool(done)
