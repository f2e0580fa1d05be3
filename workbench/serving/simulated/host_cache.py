"""The weights that one host keeps in its memory: which models, and when each was last used."""

from collections.abc import Callable

from workbench.queueing.simulated.clock import Clock


class HostCache:
    """Models by time of last use; those that no row of the host holds may go, the oldest first.

    An entry lasts while a row of its model is on the host, and for a time from its last use on. Once that has run out
    the entry is gone: a row that starts later does not bring it back.
    """

    def __init__(
        self, capacity: float, ttl_s: list[float], size: list[float], held: Callable[[int], bool], clock: Clock,
        models: list[int], pinned: list[int],
    ):  # fmt: skip
        """At first some models are there, last used at time 0.

        Parameters:
            capacity: bytes.
            ttl_s: how long an entry of each model lasts that no row holds.
            size: bytes of each model.
            held: whether a row of the host has some model and is neither empty nor dead.
            clock: tells what time it is.
            models: those that are there at first.
            pinned: those that are there at first and never go, whatever room there is.
        """
        self.capacity, self.ttl_s, self.size, self.clock = capacity, ttl_s, size, clock
        self.gone_s: dict[int, float] = {}  # when weights left that were not used up by time
        self.held = lambda model: model in self.pinned or held(model)
        self.pinned = {*pinned}
        self.last_use_s: dict[int, float] = {model: 0.0 for model in sorted({*models, *pinned}) if self.can_keep(model)}
        self.trim()

    def can_keep(self, model: int) -> bool:
        """Whether the weights of a model may be there at all: as they fit, or whatever room there is."""
        return model in self.pinned or self.size[model] <= self.capacity

    def has(self, model: int) -> bool:
        """Whether the weights of a model are there now."""
        if model not in self.last_use_s:
            return False
        if not self.held(model) and self.clock.now - self.last_use_s[model] >= self.ttl_s[model]:
            del self.last_use_s[model]
        return model in self.last_use_s

    def use(self, model: int) -> None:
        """The entry of a model, if there is one, is used now."""
        if model in self.last_use_s:
            self.last_use_s[model] = self.clock.now

    def drop(self, model: int) -> None:
        """The weights of a model, which are there, leave."""
        del self.last_use_s[model]
        self.gone_s[model] = self.clock.now

    def left_within(self, model: int, seconds: float) -> bool:
        """Whether the weights of a model have left less than some seconds ago, and did not come back."""
        return model in self.gone_s and self.clock.now - self.gone_s[model] < seconds

    def put(self, model: int) -> None:
        """The weights of a model have come through the host's memory, and stay there if they may."""
        if self.can_keep(model):
            self.last_use_s[model] = self.clock.now
            self.gone_s.pop(model, None)
            self.trim()

    def trim(self) -> None:
        """While the entries exceed the capacity, the one last used longest ago goes, of those that no row holds."""
        models = [model for model in sorted(self.last_use_s) if self.has(model)]  # what has run out takes no room
        while sum(self.size[model] for model in models) > self.capacity:
            free = [(self.last_use_s[model], model) for model in models if not self.held(model)]
            if not free:
                return
            _, oldest = min(free)
            models.remove(oldest)
            self.drop(oldest)
