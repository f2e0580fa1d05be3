"""How long a multicast takes, and into how many blocks to cut it."""

import math

from workbench.records import Record, positive, whole
from workbench.transfer.model.cost import Cost, Hockney, LogGP, only_hockney
from workbench.transfer.model.running import run_times
from workbench.transfer.policy import Schedule, flow_form, make_schedule, schedule_blocks

MOST_BLOCKS = 65_535
"""Blocks that one message of RDMC can have at most (Behrens et al. 2018, implementation)."""


def multicast_s(name: str, nodes: int, blocks: int, total_bytes: float, cost: Cost, **options) -> float:
    """Seconds until the last node holds the whole message, on equal links, everybody as early as possible (dataflow).

    Under Hockney's model steps x (α + S/(mB)), S the message, m the blocks that the schedule sends, and the steps those
    of a dataflow run (`policy.flow_form`). Under LogGP the steps overlap and the schedule's own transfers are followed
    (`schedule_s`).

    Parameters:
        name, nodes, blocks, options: as in `policy.make_schedule`.
        total_bytes: S, the whole message.
        cost: how long one message takes on every link.

    >>> round(multicast_s("binomial_pipeline", 8, 16, 26_031_728_640, Hockney(alpha_s=6.28e-3, bytes_per_s=42e9)), 2)
    0.81
    """
    total_bytes = positive(total_bytes, "total_bytes")
    cut = schedule_blocks(name, nodes, blocks, **options)
    if isinstance(cost, LogGP):
        return schedule_s(make_schedule(name, nodes, blocks, **options), total_bytes / cut, cost)
    per_block, fixed = flow_form(name, nodes, **options)
    return (per_block * cut + fixed) * only_hockney(cost).travel_s(total_bytes / cut)


def schedule_s(schedule: Schedule, block_bytes: float, cost: Cost) -> float:
    """Seconds that any schedule takes in a dataflow run over equal links, one port a node and direction.

    Parameters:
        schedule: ours or a user's own, valid by `policy.check`.
        block_bytes: size of each block.
        cost: how long one message takes on every link.
    """
    times = run_times(schedule, cost.travel_s(block_bytes), busy_s=cost.busy_s(block_bytes))
    return float(times.held_s.max())


class BlockCount(Record):
    """Into how many blocks to cut a message.

    Attributes:
        real: the number at which the derivative vanishes, not below 1; infinite where there is no overhead.
        integer: the best whole number, between 1 and the limit.
        seconds: time with `integer` blocks.
        bound_s: (√(bα) + √(aS/B))², which no number of blocks beats.
    """

    real: float
    integer: int
    seconds: float
    bound_s: float


def optimal_blocks(
    name: str, nodes: int, total_bytes: float, cost: Hockney, limit: int = MOST_BLOCKS, **options
) -> BlockCount:
    """The number of blocks with the shortest multicast: few blocks leave links idle, many pay the overhead often.

    A schedule whose dataflow run takes a·m + b steps (`policy.flow_form`) takes (a·m + b)(α + S/(mB)) seconds, least
    at m = √(bS/(aαB)).

    Parameters:
        name, nodes, options: as in `policy.make_schedule`; m counts the blocks that the schedule itself sends.
        total_bytes: S, the whole message.
        cost: α and B of every link.
        limit: most blocks allowed.

    >>> optimal_blocks("chain", 3, 100, Hockney(alpha_s=1.0, bytes_per_s=1.0))
    BlockCount(real=10.0, integer=10, seconds=121.0, bound_s=121.0)
    """
    cost, limit = only_hockney(cost), whole(limit, "limit", 1)
    wire_s = positive(total_bytes, "total_bytes") / cost.bytes_per_s
    per_block, fixed = flow_form(name, nodes, **options)

    def seconds(blocks: int) -> float:
        return (per_block * blocks + fixed) * (cost.alpha_s + wire_s / blocks)

    if fixed == 0:
        real = 1.0
    elif cost.alpha_s == 0:
        real = math.inf
    else:
        real = max(1.0, math.sqrt(fixed * wire_s / (per_block * cost.alpha_s)))
    nearby = {min(limit, max(1, rounded)) for rounded in _neighbours(real, limit)}
    best = min(sorted(nearby), key=seconds)
    bound = (math.sqrt(fixed * cost.alpha_s) + math.sqrt(per_block * wire_s)) ** 2
    return BlockCount(real=real, integer=best, seconds=seconds(best), bound_s=bound)


def _neighbours(real: float, limit: int) -> tuple[int, int]:
    return (limit, limit) if math.isinf(real) else (math.floor(real), math.ceil(real))
