"""What is asked of a real live scale-out, what can go wrong in it on purpose, and what it leaves behind."""

from typing import Annotated

import polars as pl
from pydantic import Field, model_validator

from workbench.executor.scale import Scale, times_show
from workbench.executor.transformer import Output
from workbench.records import Asked, AtLeastOne, NotNegative, Record, ZeroOrMore
from workbench.scaling.model.live_pair import LivePair

OLD, NEW, WHOLE = "old", "new", "whole"
MOST_NODES = 32


class Cancel(Asked):
    """Call the load of a new instance off at a time after the start: what it has begun goes on elsewhere."""

    node: ZeroOrMore
    at_s: NotNegative


class LiveScaleOut(Asked):
    """Overloaded instances and new ones that get the weights by chains; the tail of each chain shares batches.

    Nodes are numbered: the source is 0, then come the old instances, then the new ones chain by chain, then spare
    hosts. The source holds the weights and runs nothing before the end, when it decodes: it stands for a decode
    instance, whose way out is free, or for a host's memory where no instance has the model.

    Attributes:
        pair: what an old instance shares with the tail of its chain, in any unit of time; the same for every chain.
        chains: each with an old instance of its own and a card of the source of its own.
        targets: new instances in a chain; all but the last only forward until they are complete.
        overloaded: whether there are old instances; without them the new ones serve alone.
        spare_hosts: with room for a copy of the weights.

    >>> asked = LiveScaleOut(pair=LivePair(layers=7, load_s=6.0, arrival_s=(0.0,)), chains=2, targets=2)
    >>> asked.nodes, asked.old, asked.new, asked.tails
    (7, [1, 2], [[3, 4], [5, 6]], [4, 6])
    """

    pair: LivePair
    chains: AtLeastOne = 1
    targets: AtLeastOne = 1
    overloaded: bool = True
    spare_hosts: Annotated[ZeroOrMore, Field(le=MOST_NODES)] = 0

    @model_validator(mode="after")
    def _fits(self):
        if self.nodes > MOST_NODES:
            raise ValueError(f"has {self.nodes} nodes; take at most {MOST_NODES}")
        if not self.overloaded and self.pair.schedule != "zigzag":
            raise ValueError("has no old instance, so schedule must be 'zigzag'; give it")
        if not self.pair.arrival_s:
            raise ValueError("pair has no batches; give at least one")
        return self

    @property
    def old(self) -> list[int]:
        """Nodes of the old instances."""
        return list(range(1, 1 + self.chains)) if self.overloaded else []

    @property
    def new(self) -> list[list[int]]:
        """Nodes of the new instances of each chain, in the chain's order."""
        first = 1 + len(self.old)
        return [
            list(range(first + chain * self.targets, first + (chain + 1) * self.targets))
            for chain in range(self.chains)
        ]

    @property
    def tails(self) -> list[int]:
        """The last node of each chain."""
        return [chain[-1] for chain in self.new]

    @property
    def hosts(self) -> list[int]:
        """The spare hosts."""
        return list(range(self.nodes - self.spare_hosts, self.nodes))

    @property
    def nodes(self) -> int:
        """All of them."""
        return 1 + len(self.old) + self.chains * self.targets + self.spare_hosts


class LiveShare(Record):
    """One run; times are in units of what was asked, after the instant at which the first layer was at the tails.

    Attributes:
        asked: what was asked for.
        version: of the weights.
        batches: `pair, batch, arrival_s, finish_s, moved, by, turn`: how many of its first layers ran on the tail, on
            which node the rest ran, and how often it was begun anew.
        slots: `pair, instance, batch, start_s, end_s`: steps as `workbench.scaling.model.live_pair.Shared` has them;
            the instance is "old", "new", or "whole" for one that runs batches whole.
        blocks: `node, block, time_s`: when each new instance had each block, checked and loaded.
        copies: `time_s, kind, host, instance`: what became of complete copies of the weights (load, drop,
            lost, restore).
        outputs: of each request of each batch of each pair the tokens and the logits that they were chosen from.
        losses: `time_s, node, kind`: what died, hung or was cancelled.
        scale: how bytes and seconds of the run stand to those of full size.
        unit_s: seconds of the run that stand for one unit of time of what was asked.
        overhead: mean lateness of steps over the time of a layer, or of blocks over the time of a block, whichever is
            more.
        waiting_share: share of the wall time in which the processes used no processor, mean over nodes.
        wall_s: seconds of the run until the last batch was done and the last layer there.
    """

    asked: LiveScaleOut
    version: str
    batches: pl.DataFrame
    slots: pl.DataFrame
    blocks: pl.DataFrame
    copies: pl.DataFrame
    losses: pl.DataFrame
    outputs: tuple[Output, ...]
    scale: Scale
    unit_s: float
    overhead: float
    waiting_share: float
    wall_s: float

    @property
    def label(self) -> str:
        """What the times show: "paced" the plan (the processes mostly waited for a clock), "busy" the machine."""
        return times_show(self.waiting_share)

    def complete_s(self, node: int) -> float:
        """When a new instance had every layer; NaN for never."""
        mine = self.blocks.filter(pl.col("node") == node)
        return float(mine["time_s"].max()) if len(mine) == self.asked.pair.layers else float("nan")

    def finish_s(self, pair: int = 0) -> list[float]:
        """When the batches of a pair were done, in their order."""
        return self.batches.filter(pl.col("pair") == pair).sort("batch")["finish_s"].to_list()
