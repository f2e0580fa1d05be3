"""The router: one waiting line a model, from whose head requests go to instances that take them."""

from collections import deque
from collections.abc import Callable
from functools import partial

import numpy as np

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.lowered import REJECTED
from workbench.serving.policy import LEAST_TOKENS
from workbench.serving.policy.dispatch import choose
from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.instants import Instants
from workbench.serving.simulated.ranks import join_first, join_last
from workbench.serving.simulated.request import Request


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
        self.lines: list[deque[Request]] = [deque() for _ in range(models)]
        self.places = [[place for place in instances if place.model == model] for model in range(models)]
        self.turns = [0] * models  # where the instances of a model stand that come after the last one chosen
        self.called = False
        self.met = [0] * models  # arrivals that were not rejected

    def has_waiting(self, model: int) -> bool:
        return bool(self.lines[model])

    def meet(self, request: Request) -> None:
        """A request arrives: it is rejected, or joins the line of its model."""
        if any(place.fits(request) for place in self.places[request.model]):
            self.met[request.model] += 1
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

    def call(self) -> None:
        """Hand out once, when all steps that end at this instant have ended."""
        if any(self.lines) and not self.called:
            self.called = True
            self.clock.at(self.clock.now, self.instants.hands_out).callbacks.append(self._answer)

    def _answer(self, _) -> None:
        self.called = False
        for model in range(len(self.lines)):
            self.hand_out(model)

    def hand_out(self, model: int) -> None:
        """Give away from the head of a model's line while an instance takes it."""
        line, places = self.lines[model], self.places[model]
        while line:
            free = [number for number, place in enumerate(places) if place.takes(line[0])]
            if not free:
                return
            request = line.popleft()
            places[self._choose(request, places, free)].give(request)

    def _choose(self, request: Request, places: list[Instance], free: list[int]) -> int:
        """Which of the instances that take a request gets it: a position among `places`."""
        outstanding = np.array([places[number].outstanding for number in free], dtype=np.int64)
        tokens = np.array([places[number].tokens_left if self._by_tokens else 0 for number in free], dtype=np.int64)
        turn, offered = self.turns[request.model], np.array(free, dtype=np.int64)
        chosen = free[self._position(offered, outstanding, tokens, np.array(request.draws), turn)]
        self.turns[request.model] = (chosen + 1) % len(places)
        return chosen
