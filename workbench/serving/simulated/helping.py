"""Rows that help others of their group while their own weights are on their way."""

from math import ceil, nan

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.scaled import UP, Scaling
from workbench.serving.policy.helping import helped_s, ready_layers, worth_helping, would_break
from workbench.serving.simulated.chains import Chain, Chains
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.row import Row
from workbench.serving.simulated.step import Step

WHERE_WORTH, WHERE_BROKEN = 2, 3
"""What `Scaling.live` holds where help has to pay, and where a promise would be broken besides."""


class Assist:
    """A step that a row helps with."""

    __slots__ = ("end_s", "helper", "iteration", "layers", "row", "start_s")

    def __init__(self, start_s: float, helper: Row, row: Row, iteration: int, layers: int):
        self.start_s, self.helper, self.row, self.iteration, self.layers = start_s, helper, row, iteration, layers
        self.end_s = nan


class Helping:
    """Who helps whom now; instances ask it when a step begins, and tell it when it is over."""

    def __init__(self, given: Scaling, fleet: Fleet, chains: Chains, clock: Clock):
        self.fleet, self.chains, self.clock = fleet, chains, clock
        self.live, self.layers, self.activation_s = (
            given.live.tolist(),
            given.layers.tolist(),
            given.activation_s.tolist(),
        )
        self.promise_s, self.waits = given.promise_s.tolist(), given.waits.tolist()
        self.log: list[Assist] = []
        self.going: dict[Row, Assist] = {}  # by the row that is helped
        for row in fleet.rows:
            if self.live[row.group]:
                row.instance.helping = self

    def begin(self, index: int, iteration: int, step: Step) -> None:
        """A step with prompts is about to begin on a row; it is shorter if somebody helps."""
        row = self.fleet.rows[index]
        free = self._free(row.group)
        if row.state != UP or self._before(row) >= len(free):
            return
        layers, chain, helper = max(free, key=lambda one: one[0])
        total, tokens = self.layers[row.group], step.tokens
        hand_s = self.activation_s[row.group] * tokens
        seconds = helped_s(step.seconds, total, layers, tokens, self.activation_s[row.group])
        if not seconds < step.seconds:
            return
        if self.live[row.group] >= WHERE_WORTH:
            waiting = ceil((row.instance.prompt_tokens + self._in_line(row)) / step.prompt_tokens)
            if not worth_helping(waiting, layers, total, step.seconds / total, hand_s, self.chains.left_s(chain)):
                return
            if self.live[row.group] == WHERE_BROKEN and not self._would_break(row, chain, step.seconds):
                return
        step.seconds = seconds
        self.going[row] = Assist(self.clock.now, helper, row, iteration, layers)
        self.log.append(self.going[row])

    def _in_line(self, row: Row) -> int:
        """Tokens of prompts that wait at the router for rows like this one; for those that only decode none do."""
        line = self.fleet.router.lines[row.model] if row.group == row.model else ()
        return sum(request.need for request in line)

    def _would_break(self, row: Row, chain: Chain, alone_s: float) -> bool:
        """Whether the promise would be broken if prompts of a row waited for the load."""
        oldest_s = min(request.arrival_s for request in row.instance.requests if request.prefilling)
        times = self.clock.now - oldest_s, self.chains.whole_s(chain), self.chains.left_s(chain), alone_s
        return bool(would_break(self.waits[row.group], *times, self.promise_s[row.group]))

    def over(self, index: int, whole: bool) -> None:
        """A step of a row has ended, or is lost."""
        assist = self.going.pop(self.fleet.rows[index], None)
        if assist and whole:
            assist.end_s = self.clock.now

    def table(self) -> list[tuple]:
        """All that was helped with, as `Outcome` has it."""
        return [(x.start_s, x.end_s, x.helper.index, x.row.index, x.iteration, x.layers) for x in self.log]

    def _free(self, group: int) -> list[tuple[int, Chain, Row]]:
        """Tails that may help, with the layers that each has, in order."""
        busy, found = {assist.helper for assist in self.going.values()}, []
        for chain in self.chains.under_way(group):
            layers = int(ready_layers(self.layers[group], self.chains.sent_share(chain)))
            found += [(layers, chain, tail) for tail in chain.tails if tail not in busy and layers]
        return found

    def _before(self, row: Row) -> int:
        """How many rows have a better claim to help."""
        own = row.instance.prompt_tokens
        others = [other for other in self.fleet.of(row.group, UP) if other not in self.going and other is not row]
        claims = [(other.instance.prompt_tokens, -other.index) for other in others]
        return sum(claim > (own, -row.index) for claim in claims)
