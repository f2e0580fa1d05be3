"""An instance that decodes requests whose prompts were computed elsewhere."""

from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.ranks import join_last
from workbench.serving.simulated.request import Request
from workbench.serving.simulated.step import Step


class Decoder(Instance):
    """Requests come with their KV, for which blocks are taken before it is sent; its own queue has who was evicted."""

    awaits_others = True  # blocks may be taken, and requests land

    def __init__(self, *args):
        super().__init__(*args)
        self.coming: list[Request] = []  # in the order in which their transfers began
        self.landed: list[Request] = []  # since the latest step began

    @property
    def outstanding(self) -> int:
        return super().outstanding + len(self.coming) + len(self.landed)

    @property
    def requests(self) -> list[Request]:
        return [*super().requests, *self.coming, *self.landed]

    def expects(self, request: Request) -> bool:
        """Whether a request whose prompt is computed may be sent here now."""
        members = len(self.running) + len(self.coming) + len(self.landed)
        here = (self.up or self.finishing) and request.version == self.version and self.outstanding < self.limit
        room = here and self.fits(request) and not self.queue and members < self.slots
        return room and self._blocks_for(request) <= self.blocks.free

    def expect(self, request: Request) -> None:
        """The KV of a request is on its way, and its blocks are taken."""
        request.instance = self.index
        self.blocks.give(request, self._blocks_for(request))
        self.coming.append(request)

    def give_up(self, request: Request) -> None:
        """The KV of a request does not come any more."""
        self.coming.remove(request)
        self.blocks.take_back(request)
        self.wake()
        self._tell_if_emptied()

    def land(self, request: Request) -> None:
        """The KV of a request is there: it takes part in the next step."""
        self.coming.remove(request)
        self.landed.append(request)
        self.wake()

    def take_over(self, requests: list[Request]) -> list[Request]:
        """Of those whose KV is on this place those that it expects land, in order; the others."""
        left = []
        for request in requests:
            if self.expects(request):
                self.expect(request)
                self.land(request)
            else:
                left.append(request)
        return left

    def _blocks_for(self, request: Request) -> int:
        return self.blocks.holding(request.most_stored if self.reserve else request.stored)

    def _start(self) -> Step | None:
        for request in self.landed:
            join_last(self.running, request)
        self.landed.clear()
        return super()._start()

    def _take_all(self) -> list[Request]:
        self.running += self.landed
        self.landed.clear()
        return super()._take_all()
