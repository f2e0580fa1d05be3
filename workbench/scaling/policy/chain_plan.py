"""Which instance sends the weights to which: BlitzScale's greedy plan of forwarding chains.

Source: BlitzScale (OSDI'25) §5.1, Fig 10 to 12; the pseudocode is rebuilt from the prose (notes on BlitzScale, §2.2).
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from workbench.errors import InputError
from workbench.records import Asked, NotNegative, Positive, ZeroOrMore, whole

Busy = Literal["prefill", "decode", "colocated", "host"]


class Holder(Asked):
    """A complete copy of the weights.

    Attributes:
        name: of the instance or host.
        role: what it does; a prefill instance sends KV, so its way out is in use; a host's memory serves nobody.
        leaf: number of the leaf switch.
        bytes_per_s: of its network cards together, each way.
    """

    name: str
    role: Busy = "decode"
    leaf: ZeroOrMore = 0
    bytes_per_s: Positive


class Spare(Asked):
    """An accelerator without the weights.

    Attributes:
        name: of the accelerator.
        domain: number of its scale-up domain; inside it weights spread at no cost worth counting.
        leaf, bytes_per_s: as for `Holder`.
    """

    name: str
    domain: ZeroOrMore
    leaf: ZeroOrMore = 0
    bytes_per_s: Positive


class Node(Asked):
    """Spare accelerators of one scale-up domain, which receive together.

    Attributes:
        members: their names.
        leaf: of the first of them.
        bytes_per_s: sum of their cards.
    """

    members: tuple[str, ...]
    leaf: ZeroOrMore
    bytes_per_s: NotNegative


class Chain(Asked):
    """A source and the nodes behind it, each forwarding to the next. Only the last can serve without a clash."""

    source: Holder
    nodes: tuple[Node, ...]

    @property
    def live(self) -> tuple[str, ...]:
        """Accelerators that may serve while they load: those of the tail, whose way out is free."""
        return self.nodes[-1].members if self.nodes else ()


def free_sources(holders: Sequence[Holder], direction_aware: bool = True) -> list[Holder]:
    """Holders whose way out carries no traffic of serving; all of them if there are no others.

    >>> free_sources([Holder(name="p", role="prefill", bytes_per_s=1), Holder(name="d", bytes_per_s=1)])[0].name
    'd'
    """
    free = [holder for holder in holders if holder.role in ("decode", "host")]
    return free if free and direction_aware else list(holders)


def grouped(spares: Sequence[Spare], wanted: int) -> list[Node]:
    """Nodes of spare accelerators by scale-up domain, fastest first (ties: first named), cut to `wanted` of them."""
    domains: dict[int, list[Spare]] = {}
    for spare in spares:
        domains.setdefault(spare.domain, []).append(spare)
    nodes = [
        Node(
            members=tuple(spare.name for spare in group),
            leaf=group[0].leaf,
            bytes_per_s=sum(spare.bytes_per_s for spare in group),
        )
        for group in domains.values()
    ]
    nodes.sort(key=lambda node: -node.bytes_per_s)
    chosen: list[Node] = []
    left = wanted
    for node in nodes:
        if left <= 0:
            break
        taken = node.members[:left]
        share = node.bytes_per_s * len(taken) / len(node.members)
        chosen.append(Node(members=taken, leaf=node.leaf, bytes_per_s=share))
        left -= len(taken)
    return sorted(chosen, key=lambda node: -node.bytes_per_s)


def check_parts(holders: Sequence[Holder], spares: Sequence[Spare], wanted: int) -> None:
    """What every planner needs: somebody who holds the weights, enough accelerators, and each name only once.

    Raises:
        InputError: it is not so.
    """
    if not holders:
        raise InputError("is empty", "name an instance or a host that holds the weights", field="holders")
    if whole(wanted, "wanted", 0) > len(spares):
        raise InputError(
            f"is {wanted} where {len(spares)} spare accelerators are given", "want fewer or give more", field="wanted"
        )
    for field, parts in (("holders", holders), ("spares", spares)):
        names = Counter(part.name for part in parts)
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            raise InputError(f"has {twice!r} {names[twice]} times", "give each a name of its own", field=field)


def plan_chains(
    holders: Sequence[Holder],
    spares: Sequence[Spare],
    wanted: int,
    chains: int | None = None,
    direction_aware: bool = True,
) -> list[Chain]:
    """Which chains bring the weights to `wanted` spare accelerators?

    Sources that serve in the same direction are left out; spare accelerators are grouped by scale-up domain and taken
    by bandwidth; each in turn goes behind a tail under its own leaf switch, and else behind the shortest chain (ties:
    the first). A chain starts under a leaf that has targets where it can.

    Parameters:
        holders, spares: what there is.
        wanted: accelerators to reach.
        chains: how many; as many as there are sources and targets for when None. The paper does not state the number.
        direction_aware: prune sources by direction of traffic.

    Raises:
        InputError: no holder, a name given twice, fewer spares than wanted, more chains than sources or targets.
    """
    check_parts(holders, spares, wanted)
    if not wanted:
        return []
    nodes = grouped(spares, wanted)
    sources = free_sources(holders, direction_aware)
    most = min(len(sources), len(nodes))
    count = most if chains is None else whole(chains, "chains", 1)
    if count > most:
        raise InputError(
            f"is {count} where {len(sources)} free sources and {len(nodes)} targets allow {most}",
            "lower it",
            field="chains",
        )
    leaves = {node.leaf for node in nodes}
    order = sorted(sources, key=lambda holder: (holder.leaf not in leaves, -holder.bytes_per_s))
    tails = [(source, []) for source in order[:count]]
    for index, node in enumerate(nodes):
        left = len(nodes) - index
        empty = [tail for tail in tails if not tail[1]]
        # Every chain gets a node: the last ones are kept for those that have none.
        open_ = empty if len(empty) >= left else tails
        near = [tail for tail in open_ if _leaf(tail) == node.leaf]
        min(near or open_, key=lambda tail: len(tail[1]))[1].append(node)
    return [Chain(source=source, nodes=tuple(nodes)) for source, nodes in tails]


def _leaf(tail: tuple[Holder, list[Node]]) -> int:
    source, nodes = tail
    return nodes[-1].leaf if nodes else source.leaf
