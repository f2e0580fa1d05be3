"""An instance that only computes prompts, and keeps their KV until it has been sent."""

from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.ranks import join_first, join_last
from workbench.serving.simulated.request import Request
from workbench.serving.simulated.step import Step


class Prefiller(Instance):
    """Requests leave with their first token; their blocks are free when another instance has a copy of what is there.

    So there may be nobody who runs, and no room for who waits: until blocks are free, or somebody else comes.
    """

    awaits_others = True  # blocks may become free

    def __init__(self, *args):
        super().__init__(*args)
        self.leaving: dict[Request, int] = {}  # blocks of each, in the order in which their prompts were done
        self.sealed = False  # whether what waits was about to start, and blocks for the first were not free

    @property
    def in_use(self) -> bool:
        return bool(self.outstanding or self.leaving)

    @property
    def is_done(self) -> bool:
        return not self.outstanding and (not self.leaving or (self.keeps_kv and not self._sends))

    @property
    def _sends(self) -> bool:
        """Whether KV is on its way from here."""
        return any(request in self.router.migrations.flows for request in self.leaving)

    @property
    def at_rest(self) -> bool:
        waits = bool(self.queue) and self._newcomer_blocks(self.queue[0]) > self.blocks.free
        return not self.running and (waits or not self.queue)

    def takes(self, request: Request) -> bool:
        return super().takes(request) and (not self.batch or self._joins_batch(request))

    def _joins_batch(self, request: Request) -> bool:
        """Whether nothing runs here, and a request goes with what was taken for the next step, or is the first."""
        if self.running or not self.queue:
            return not self.running
        together = [*self.queue, request]
        tokens, blocks = sum(one.need for one in together), sum(map(self._newcomer_blocks, together))
        return not self.sealed and tokens <= self.batch and blocks <= self.blocks.free

    def lacks_blocks(self, request: Request) -> bool:
        return bool(self.batch) and not self.queue and self._newcomer_blocks(request) > self.blocks.free

    def give(self, request: Request) -> None:
        self.sealed = self.sealed and bool(self.queue)
        super().give(request)

    def let_go(self, request: Request) -> None:
        """Another instance has the KV of a request."""
        self.blocks.free += self.leaving.pop(request)
        self.wake()
        self._tell_if_emptied()

    def turned_back(self, request: Request) -> None:
        """KV that was on its way from here does not come where it was sent: it stays, or waits first of its rank."""
        if self.keeps_kv:
            self._tell_if_emptied()
        else:
            join_first(self.router.decode_lines[self.model], request)

    def keep_kv(self) -> None:
        """KV that is not on its way stays here from now on: nobody waits to decode it elsewhere."""
        self.keeps_kv, line = True, self.router.decode_lines[self.model]
        for request in self.leaving:
            if request not in self.router.migrations.flows:
                line.remove(request)

    def keep_no_kv(self) -> None:
        """KV that stayed here waits to be decoded like any other's."""
        if self.keeps_kv:
            self.keeps_kv = False
            for request in self.leaving:
                if request not in self.router.migrations.flows:
                    join_last(self.router.decode_lines[self.model], request)

    def leave_kv(self) -> list[Request]:
        """Those whose KV stayed here, in the order in which their prompts were done; their blocks are free."""
        stayed = list(self.leaving)
        self.blocks.free += sum(self.leaving.values())
        self.leaving.clear()
        return stayed

    def _start(self) -> Step | None:
        step = super()._start()
        self.sealed = step is None
        return step

    def _end(self, step: Step) -> bool:
        done = super()._end(step)
        left = [request for request, _ in step.chunks if not request.prefilling and request.made < request.output]
        for request in left:
            self.running.remove(request)
            self.leaving[request] = self.blocks.detach(request)
            if not self.keeps_kv:
                self.router.pass_on(request)
        return done or bool(left)

    def _take_all(self) -> list[Request]:
        self.running += self.leaving
        self.blocks.free += sum(self.leaving.values())
        self.leaving.clear()
        return super()._take_all()
