"""Which nodes hold a complete copy of the weights, and who sends them to whom, before anything is lost and after."""

from typing import NamedTuple

from workbench.scaling.model.parameter_pool import ParameterPool, Step
from workbench.scaling.policy.chain_plan import Holder, Spare, free_sources, plan_chains
from workbench.scaling.real.live_outcome import LiveScaleOut

MODEL = "model"


class Hop(NamedTuple):
    """One flow of blocks: from which card of which node, to which node."""

    source: int
    card: int
    target: int


class Copies:
    """The parameter pool of one run; every node is a host of its own.

    Attributes:
        log: (instant, step) of all that became of copies.
    """

    def __init__(self, asked: LiveScaleOut, weight_bytes: float, now_s: float):
        self._asked, self.log = asked, list[tuple[float, Step]]()
        room = dict.fromkeys(range(asked.nodes), 0.0) | dict.fromkeys(asked.hosts, weight_bytes)
        if not asked.overloaded:
            room[0] = weight_bytes
        self._pool = ParameterPool({_name(node): size for node, size in room.items()}, {MODEL: weight_bytes})
        if asked.overloaded:
            for node in (0, *asked.old):
                self.complete(node, now_s)
        else:
            self._note(self._pool.spread(), now_s)

    def first_hops(self) -> list[Hop]:
        """The chains by BlitzScale's plan: from the source, whose cards are free, past no old instance."""
        asked = self._asked
        role = "decode" if asked.overloaded else "host"
        holders = [Holder(name=f"0/{card}", role=role, bytes_per_s=1.0) for card in range(asked.chains)]
        holders += [Holder(name=f"{node}/0", role="prefill", bytes_per_s=1.0) for node in asked.old]
        # In the plan nodes go to chains in turn; a chain of ours is what falls to one source.
        order = [chain[place] for place in range(asked.targets) for chain in asked.new]
        spares = [Spare(name=str(node), domain=place, bytes_per_s=1.0) for place, node in enumerate(order)]
        hops = []
        for chain in plan_chains(holders, spares, len(spares)):
            before, card = map(int, chain.source.name.split("/"))
            for node in chain.nodes:
                hops.append(Hop(before, card, int(node.members[0])))
                before, card = int(node.members[0]), 0
        return hops

    def complete(self, node: int, now_s: float) -> None:
        """A node holds all weights now, as an instance."""
        self._note(self._pool.deploy(MODEL, _name(node), _name(node)), now_s)

    def lost(self, node: int, now_s: float) -> list[int]:
        """A node is gone; the hosts that are to read a copy from the store because the last one went with it."""
        steps = self._pool.fail(_name(node))
        self._note(steps, now_s)
        return [_number(step.copy.host) for step in steps if step.kind == "restore"]

    def source(self) -> int | None:
        """Who sends in the place of a lost node: a copy whose way out is free where there is one; None for nobody."""
        serving = {*self._asked.old, *(node for chain in self._asked.new for node in chain)}
        holders = [
            Holder(name=copy.host, role="prefill" if _number(copy.host) in serving else "decode", bytes_per_s=1.0)
            for copy in self._pool.sources(MODEL)
        ]
        return _number(free_sources(holders)[0].name) if holders else None

    def _note(self, steps: list[Step], now_s: float) -> None:
        self.log += [(now_s, step) for step in steps]


def _name(node: int) -> str:
    return f"node {node}"


def _number(name: str) -> int:
    return int(name.removeprefix("node "))
