"""What one slow link costs: little in a binomial pipeline, everything in a chain."""

import numpy as np
import polars as pl

from workbench.errors import UserError
from workbench.transfer.model.numbers import positive
from workbench.transfer.model.running import run_times
from workbench.transfer.policy import Schedule


def slow_link_share(nodes: int, slowness: np.ndarray | float) -> np.ndarray | float:
    """Share of nominal throughput that a binomial pipeline keeps with one slow directed link: l / (l - 1 + B/B').

    With n = 2^l nodes every link is used in one step of l, so only that step grows (many blocks).

    Parameters:
        nodes: n, a power of two.
        slowness: B'/B, bandwidth of the slow link over that of the others, above 0.

    Raises:
        `UserError` when n is no power of two; links are then used unequally often, ask `slow_link_table`.

    >>> [round(slow_link_share(n, 0.5), 3) for n in (8, 16, 64)]
    [0.75, 0.8, 0.857]
    """
    if nodes < 2 or nodes & (nodes - 1):
        raise UserError(f"The slow-link formula is for 2, 4, 8, … nodes, got {nodes}; use slow_link_table instead.")
    dimensions = nodes.bit_length() - 1
    return dimensions / (dimensions - 1 + 1 / slowness)


def slow_link_share_of_chain(nodes: int, blocks: int, slowness: np.ndarray | float) -> np.ndarray | float:
    """Share of nominal throughput that a chain keeps: (m + n - 2) / (m B/B' + n - 2), near B'/B for many blocks."""
    return (blocks + nodes - 2) / (blocks / slowness + nodes - 2)


def slow_link_table(schedule: Schedule, slowness: float) -> pl.DataFrame:
    """Every link that a schedule uses, and what is left of the throughput when that one link is slow.

    In lock step each of the u steps that use the link grows, so the share is T / (T + u(B/B' - 1)) for T steps.

    Parameters:
        schedule: any valid schedule.
        slowness: B'/B.

    Returns:
        a table `source, target, uses, barrier_share, dataflow_share`, one row a link.
    """
    factor = 1 / positive(slowness, "slowness")
    link = schedule.source.astype(np.int64) * schedule.nodes + schedule.target
    links, uses = np.unique(link, return_counts=True)
    flowing = [run_times(schedule, np.where(link == one, factor, 1.0)).held_s.max() for one in links]
    nominal = run_times(schedule, 1.0).held_s.max()
    return pl.DataFrame(
        {
            "source": links // schedule.nodes,
            "target": links % schedule.nodes,
            "uses": uses,
            "barrier_share": schedule.steps / (schedule.steps + uses * (factor - 1)),
            "dataflow_share": nominal / np.array(flowing),
        }
    )
