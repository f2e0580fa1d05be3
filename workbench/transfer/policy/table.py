"""All schedules by name, with the number of steps that each one takes."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from workbench.errors import UnknownName, UserError
from workbench.records import whole
from workbench.transfer.policy.binomial import binomial_pipeline
from workbench.transfer.policy.faasnet import faasnet_tree, fibonacci_tree
from workbench.transfer.policy.k_way import check_order, k_way, sub_groups
from workbench.transfer.policy.multi_chain import chain_members, multi_chain
from workbench.transfer.policy.schedule import LARGEST_COUNT, Schedule, check_size
from workbench.transfer.policy.sharded import hosts_and_share, sharded
from workbench.transfer.policy.trees import binary_tree, binomial_tree, heap_lag
from workbench.transfer.policy.unicast import chain, ring_broadcast, sequential


class ScheduleKind(NamedTuple):
    """One way to multicast.

    Attributes:
        generate: (nodes, blocks, options of its own) -> Schedule; its signature holds the options' defaults.
        label: name for people.
        formula: number of steps as text; n nodes, m blocks of the schedule.
        form: (nodes, all options) -> (a, b) such that a multicast of m blocks takes a·m + b steps.
        pieces: name of the option that says how many blocks of the schedule each block is sent as, "" for one.
        flow: as `form`, for a dataflow run, where that is done sooner than in lock step.
    """

    generate: Callable[..., Schedule]
    label: str
    formula: str
    form: Callable[..., tuple[int, int]]
    pieces: str = ""
    flow: Callable[..., tuple[int, int]] | None = None


def _tree_form(deepest: int, nodes: int) -> tuple[int, int]:
    return (2, deepest - 2) if nodes > 2 else (1, 0)


def _faasnet_form(nodes: int) -> tuple[int, int]:
    return _tree_form(int(fibonacci_tree(nodes)[1].max()), nodes)


def _ring_form(nodes: int, slices: int) -> tuple[int, int]:
    whole(slices, "slices", 1)
    return 1, nodes - 2


def _k_way_form(nodes: int, sources: int, order: str, parts: int) -> tuple[int, int]:
    check_order(order)
    whole(parts, "parts", 1)
    return 1, log2_ceiling(len(sub_groups(nodes, sources)[0])) - 1


def _multi_chain_form(nodes: int, chains: int, sources: int) -> tuple[int, int]:
    targets = range(whole(sources, "sources", 1), nodes)
    lengths = [len(members) for members in chain_members(targets, chains, sources)]
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
        lambda nodes: _tree_form(int(heap_lag(np.arange(nodes)).max()), nodes),
    ),
    "faasnet_tree": ScheduleKind(
        faasnet_tree,
        "FaaSNet tree",
        "2(m-1) + D(n) (m for n = 2)",
        _faasnet_form,
        flow=lambda nodes: (1, 1) if nodes == 3 else _faasnet_form(nodes),
    ),
    "binomial_pipeline": ScheduleKind(
        binomial_pipeline, "binomial pipeline", "m - 1 + ⌈log2 n⌉", lambda nodes: (1, log2_ceiling(nodes) - 1)
    ),
    "ring_broadcast": ScheduleKind(
        ring_broadcast,
        "ring broadcast in slices",
        "m + n - 2, m counted in slices",
        _ring_form,
        "slices",
    ),
    "k_way": ScheduleKind(
        k_way, "k sources, rotated orders", "m - 1 + ⌈log2 L⌉, L nodes in the largest sub-group", _k_way_form, "parts"
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
        lambda nodes, lanes: (1, hosts_and_share(nodes, lanes, lanes)[0] - 2),
    ),
}


def make_schedule(name: str, nodes: int, blocks: int, **options) -> Schedule:
    """The transfers of a named schedule.

    Raises:
        `UnknownName` for an unknown schedule, `UserError` for an option it does not have or impossible sizes.

    >>> make_schedule("chain", 8, 16).steps
    22
    """
    return _kind(name).generate(nodes, blocks, **all_options(name, options))


def steps(name: str, nodes: int, blocks: int, **options) -> int:
    """Number of steps of a named schedule in lock step, by its formula; `blocks` counts the schedule's own blocks.

    >>> steps("binomial_pipeline", 8, 16), steps("sequential", 8, 16)
    (18, 112)
    """
    nodes, blocks = check_size(nodes, blocks)
    per_block, fixed = step_form(name, nodes, **options)
    return per_block * blocks + fixed


def schedule_blocks(name: str, nodes: int, blocks: int, **options) -> int:
    """Number of blocks that a named schedule really sends: slices or parts count, where a block is sent as several.

    >>> schedule_blocks("ring_broadcast", 8, 16, slices=4), schedule_blocks("chain", 8, 16)
    (64, 16)
    """
    nodes, blocks = check_size(nodes, blocks)
    step_form(name, nodes, **options)
    option = _kind(name).pieces
    return blocks * whole(all_options(name, options).get(option, 1), option, 1, LARGEST_COUNT // blocks)


def step_form(name: str, nodes: int, **options) -> tuple[int, int]:
    """(a, b) such that the named schedule takes a·m + b steps in lock step, for m blocks among `nodes` nodes."""
    nodes, _ = check_size(nodes, 1)
    return _kind(name).form(nodes, **all_options(name, options))


def flow_form(name: str, nodes: int, **options) -> tuple[int, int]:
    """(a, b) such that a dataflow run of the named schedule takes a·m + b steps on equal links.

    The same as in lock step, but for FaaSNet's tree of three nodes: its source has one child and, as nobody waits for a
    step to begin, no reason to sit out every other turn: m + 1 steps instead of 2m.

    >>> flow_form("faasnet_tree", 3), step_form("faasnet_tree", 3)
    ((1, 1), (2, 0))
    """
    nodes, _ = check_size(nodes, 1)
    kind = _kind(name)
    return (kind.flow or kind.form)(nodes, **all_options(name, options))


def all_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """Every option of a named schedule: as given, else its default.

    Raises:
        `UnknownName` for an unknown schedule, `UserError` for an option that it does not have.

    >>> all_options("multi_chain", {"chains": 3})
    {'chains': 3, 'sources': 1}
    """
    known = _defaults(_kind(name).generate)
    for option in options:
        if option not in known:
            allowed = f"its options are {', '.join(known)}" if known else "it has none"
            raise UserError(f"Schedule {name!r} has no option {option!r}; {allowed}.")
    return known | options


def lower_bound(nodes: int, blocks: int) -> int:
    """Steps that no one-port schedule from one source can beat: m - 1 + ⌈log2 n⌉.

    After m - 1 steps some block has never left the source, and the holders of a block at most double in a step
    (Bar-Noy and Kipnis 1994).
    """
    nodes, blocks = check_size(nodes, blocks)
    return blocks - 1 + log2_ceiling(nodes)


def log2_ceiling(number: int) -> int:
    """⌈log2 number⌉ of a positive integer, exactly."""
    return (whole(number, "number", 1) - 1).bit_length()


def _kind(name: str) -> ScheduleKind:
    if name not in SCHEDULES:
        raise UnknownName("schedule", name, SCHEDULES)
    return SCHEDULES[name]


@functools.cache
def _defaults(generate: Callable[..., Schedule]) -> dict[str, Any]:
    parameters = list(inspect.signature(generate).parameters.values())[2:]
    return {parameter.name: parameter.default for parameter in parameters}
