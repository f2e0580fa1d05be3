"""The router: one waiting line a model, from whose head requests go to instances that take them."""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.lowered import DECODE, REJECTED
from workbench.serving.policy import LEAST_TOKENS
from workbench.serving.policy.dispatch import choose
from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.instants import Instants
from workbench.serving.simulated.migrations import Migrations
from workbench.serving.simulated.ranks import join_first, join_last
from workbench.serving.simulated.request import Request


class Line(deque):
    """Requests that wait, the instances that they wait for, and which of these comes after the last one chosen."""

    def __init__(self, places: Iterable[Instance]):
        super().__init__()
        self.places, self.turn = list(places), 0
        self.met = 0  # requests that came here, those not counted that a failure threw out

    def fits(self, request: Request) -> bool:
        """Whether some instance could serve a request to its end; also where there are none to be waited for."""
        return not self.places or any(place.fits(request) for place in self.places)


class Router:
    """First come, first served by model and rank; a head that no instance takes now holds up those behind it."""

    def __init__(
        self, instances: list[Instance], models: int, route: int, clock: Clock, instants: Instants,
        own: Callable | None = None,
    ):  # fmt: skip
        """Nobody waits yet.

        Parameters:
            route: number of the policy that chooses.
            own: chooses in its place: takes and returns what `policy.dispatch.choose` does, without the number.
        """
        self.clock, self.instants = clock, instants
        self._position, self._by_tokens = own or partial(choose, route), own is not None or route == LEAST_TOKENS
        places = [[place for place in instances if place.model == model] for model in range(models)]
        self.lines = [Line(place for place in mine if place.role != DECODE) for mine in places]
        self.decode_lines = [Line(place for place in mine if place.role == DECODE) for mine in places]
        self.migrations: Migrations | None = None  # by which those in decode lines go on
        self.versions = [0] * models  # the newest of each model's weights
        self.called = False

    def meet(self, request: Request) -> None:
        """A request arrives: it is rejected, or joins the line of its model."""
        lines = (self.lines[request.model], self.decode_lines[request.model])
        if lines[0].places and all(line.fits(request) for line in lines):
            lines[0].met += 1
            join_last(self.lines[request.model], request)
            self.hand_out(request.model)
        else:
            request.status = REJECTED

    def meet_again(self, requests: list[Request], model: int) -> None:
        """Those that a failure threw out wait before all others of their ranks, in their order."""
        for request in reversed(requests):
            request.moves += 1
            join_first(self.lines[model], request)
        self.hand_out(model)
        self.hand_on(model)

    def pass_on(self, request: Request) -> None:
        """A request whose prompt is computed waits for an instance that decodes."""
        line = self.decode_lines[request.model]
        line.met += 1
        join_last(line, request)

    def call(self) -> None:
        """Hand out once, when all steps that end at this instant have ended."""
        if (any(self.lines) or any(self.decode_lines)) and not self.called:
            self.called = True
            self.clock.at(self.clock.now, self.instants.hands_out).callbacks.append(self._answer)

    def _answer(self, _) -> None:
        self.called = False
        for model in range(len(self.lines)):
            self.hand_out(model)
        for model in range(len(self.lines)):
            self.hand_on(model)

    def hand_out(self, model: int) -> None:
        """Give away from the head of a model's line while an instance takes it."""
        line = self.lines[model]
        while line:
            free = [number for number, place in enumerate(line.places) if place.takes(line[0])]
            if not free:
                return
            request = line.popleft()
            ready = [number for number in free if not line.places[number].lacks_blocks(request)]
            self._choose(request, line, ready or free).give(request)

    def hand_on(self, model: int) -> None:
        """Send from the head of a model's decode line while an instance takes it."""
        line, anew = self.decode_lines[model], []
        while line:
            free = [number for number, place in enumerate(line.places) if place.expects(line[0])]
            if free:
                request = line.popleft()
                self.migrations.start(request, self._choose(request, line, free))
            elif self._is_stranded(line[0], line):
                anew.append(line.popleft())
                self.migrations.drop(anew[-1])
            else:
                break
        for request in reversed(anew):
            request.moves += 1
            join_first(self.lines[model], request)
        if anew:
            self.hand_out(model)

    def _is_stranded(self, request: Request, line: Line) -> bool:
        """Whether the KV of a request is of an older version that nobody decodes any more."""
        old = request.version != self.versions[request.model]
        return old and not any(
            place.version == request.version and (place.up or place.finishing) for place in line.places
        )

    def _choose(self, request: Request, line: "Line", free: list[int]) -> Instance:
        """Which of the instances that take a request gets it."""
        places = line.places
        outstanding = np.array([places[number].outstanding for number in free], dtype=np.int64)
        tokens = np.array([places[number].tokens_left if self._by_tokens else 0 for number in free], dtype=np.int64)
        offered = np.array(free, dtype=np.int64)
        chosen = free[self._position(offered, outstanding, tokens, np.array(request.draws), line.turn)]
        line.turn = (chosen + 1) % len(places)
        return places[chosen]
