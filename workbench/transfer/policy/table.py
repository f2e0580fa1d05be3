"""All schedules by name, with the number of steps that each one takes."""

import inspect
from collections.abc import Callable
from typing import NamedTuple

from workbench.errors import UnknownName, UserError
from workbench.transfer.policy.binomial import binomial_pipeline
from workbench.transfer.policy.faasnet import faasnet_tree, fibonacci_tree
from workbench.transfer.policy.k_way import k_way, sub_groups
from workbench.transfer.policy.multi_chain import chain_members, multi_chain
from workbench.transfer.policy.schedule import Schedule, check_size
from workbench.transfer.policy.sharded import hosts_and_share, sharded
from workbench.transfer.policy.trees import binary_tree, binomial_tree, heap_lag
from workbench.transfer.policy.unicast import chain, ring_broadcast, sequential


class ScheduleKind(NamedTuple):
    """One way to multicast.

    Attributes:
        generate: (nodes, blocks, options of its own) -> Schedule.
        label: name for people.
        formula: number of steps as text; n nodes, m blocks of the schedule.
        form: (nodes, the same options) -> (a, b) such that a multicast of m blocks takes a·m + b steps.
        pieces: name of the option that says how many blocks of the schedule each block is sent as, with its default.
    """

    generate: Callable[..., Schedule]
    label: str
    formula: str
    form: Callable[..., tuple[int, int]]
    pieces: tuple[str, int] = ("", 1)


def _tree_form(per_block: int, fixed: int, nodes: int) -> tuple[int, int]:
    return (per_block, fixed) if nodes > 2 else (1, 0)


def _multi_chain_form(nodes: int, chains: int = 2, sources: int = 1) -> tuple[int, int]:
    lengths = [len(members) for members in chain_members(range(sources, nodes), chains, sources)]
    if sources == chains:
        return 1, lengths[0] - 1
    return chains, max(chain + length for chain, length in enumerate(lengths)) - chains


SCHEDULES: dict[str, ScheduleKind] = {
    "sequential": ScheduleKind(sequential, "sequential (star)", "m(n-1)", lambda nodes: (nodes - 1, 0)),
    "chain": ScheduleKind(chain, "chain", "m + n - 2", lambda nodes: (1, nodes - 2)),
    "binomial_tree": ScheduleKind(binomial_tree, "binomial tree", "m⌈log2 n⌉", lambda nodes: (log2_ceiling(nodes), 0)),
    "binary_tree": ScheduleKind(
        binary_tree,
        "binary tree, one port",
        "2(m-1) + deepest lag (m for n = 2)",
        lambda nodes: _tree_form(2, max(int(heap_lag(node)) for node in range(nodes)) - 2, nodes),
    ),
    "faasnet_tree": ScheduleKind(
        faasnet_tree,
        "FaaSNet tree",
        "2(m-1) + D(n) (m for n = 2)",
        lambda nodes: _tree_form(2, int(fibonacci_tree(nodes)[1].max()) - 2, nodes),
    ),
    "binomial_pipeline": ScheduleKind(
        binomial_pipeline, "binomial pipeline", "m - 1 + ⌈log2 n⌉", lambda nodes: (1, log2_ceiling(nodes) - 1)
    ),
    "ring_broadcast": ScheduleKind(
        ring_broadcast,
        "ring broadcast in slices",
        "m + n - 2, m counted in slices",
        lambda nodes, slices=8: (1, nodes - 2),
        ("slices", 8),
    ),
    "k_way": ScheduleKind(
        k_way,
        "k sources, rotated orders",
        "m - 1 + ⌈log2 L⌉, L nodes in the largest sub-group",
        lambda nodes, sources=2, order="contiguous", parts=1: (1, log2_ceiling(len(sub_groups(nodes, sources)[0])) - 1),
        ("parts", 1),
    ),
    "multi_chain": ScheduleKind(
        multi_chain,
        "several chains",
        "c(m-1) + longest chain from one source, m - 1 + longest chain from c",
        _multi_chain_form,
    ),
    "sharded": ScheduleKind(
        sharded,
        "sharded lanes and all-gather",
        "m + H - 2, H hosts",
        lambda nodes, lanes=2: (1, hosts_and_share(nodes, lanes, lanes)[0] - 2),
    ),
}


def make_schedule(name: str, nodes: int, blocks: int, **options) -> Schedule:
    """The transfers of a named schedule.

    Raises:
        `UnknownName` for an unknown schedule, `UserError` for an option it does not have or impossible sizes.

    >>> make_schedule("chain", 8, 16).steps
    22
    """
    return _kind(name, options).generate(nodes, blocks, **options)


def steps(name: str, nodes: int, blocks: int, **options) -> int:
    """Number of steps of a named schedule by its formula; `blocks` counts the schedule's own blocks.

    >>> steps("binomial_pipeline", 8, 16), steps("sequential", 8, 16)
    (18, 112)
    """
    check_size(nodes, blocks)
    per_block, fixed = step_form(name, nodes, **options)
    return per_block * blocks + fixed


def schedule_blocks(name: str, nodes: int, blocks: int, **options) -> int:
    """Number of blocks that a named schedule really sends: slices or parts count, where a block is sent as several.

    >>> schedule_blocks("ring_broadcast", 8, 16, slices=4), schedule_blocks("chain", 8, 16)
    (64, 16)
    """
    check_size(nodes, blocks)
    kind = _kind(name, options)
    kind.form(nodes, **options)
    option, default = kind.pieces
    pieces = options.get(option, default)
    if pieces < 1:
        raise UserError(
            f"Schedule {name!r} sends a block as at least 1 piece, got {option} = {pieces}; raise {option}."
        )
    return blocks * pieces


def step_form(name: str, nodes: int, **options) -> tuple[int, int]:
    """(a, b) such that the named schedule takes a·m + b steps for m blocks among `nodes` nodes."""
    check_size(nodes, 1)
    return _kind(name, options).form(nodes, **options)


def lower_bound(nodes: int, blocks: int) -> int:
    """Steps that no one-port schedule from one source can beat: m - 1 + ⌈log2 n⌉.

    After m - 1 steps some block has never left the source, and the holders of a block at most double in a step
    (Bar-Noy and Kipnis 1994).
    """
    check_size(nodes, blocks)
    return blocks - 1 + log2_ceiling(nodes)


def log2_ceiling(number: int) -> int:
    """⌈log2 number⌉ of a positive integer, exactly."""
    return (number - 1).bit_length()


def _kind(name: str, options: dict) -> ScheduleKind:
    if name not in SCHEDULES:
        raise UnknownName("schedule", name, SCHEDULES)
    kind = SCHEDULES[name]
    known = list(inspect.signature(kind.generate).parameters)[2:]
    for option in options:
        if option not in known:
            allowed = f"its options are {', '.join(known)}" if known else "it has none"
            raise UserError(f"Schedule {name!r} has no option {option!r}; {allowed}.")
    return kind
