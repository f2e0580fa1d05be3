"""When each node holds each block, by closed form on equal links."""

from typing import Literal, get_args

import numpy as np
import polars as pl

from workbench.errors import UnknownName
from workbench.records import positive
from workbench.transfer.kernels import arrivals as kernels
from workbench.transfer.kernels.coverage import last_arrivals
from workbench.transfer.kernels.pipeline import binomial_pipeline_arrivals
from workbench.transfer.model.cost import Hockney, only_hockney
from workbench.transfer.policy import (
    all_options,
    check_cells,
    fibonacci_tree,
    hosts_and_share,
    schedule_blocks,
    sent_order,
    sub_groups,
)
from workbench.transfer.policy.k_way import BlockOrder

Run = Literal["dataflow", "barrier"]
"""*dataflow*: a transfer starts when sender and receiver are free and the block is there, as RDMC does it; *barrier*:
all transfers of a step start together when the step before has ended."""


def arrival_steps(name: str, nodes: int, blocks: int, run: Run = "dataflow", **options) -> np.ndarray:
    """Number of steps after which each node holds each block of a named schedule, without building the schedule.

    Parameters:
        name, nodes, blocks, options: as in `policy.make_schedule`.
        run: see `Run`; a dataflow run is faster only for the binomial tree, for FaaSNet's tree of three nodes and for
            sharded lanes on one port.

    Returns:
        int64 (nodes, blocks of the schedule); 0 where the node held the block at first.

    Raises:
        `UnknownName` for an unknown schedule or run, `UserError` for impossible sizes or options.

    >>> arrival_steps("binomial_pipeline", 4, 3).tolist()
    [[0, 0, 0], [1, 4, 3], [3, 2, 4], [2, 3, 4]]
    """
    check_run(run)
    nodes, cut = check_cells(nodes, schedule_blocks(name, nodes, blocks, **options))
    options = all_options(name, options)
    steps = np.empty((nodes, cut), dtype=np.int64)
    pipelined = run == "dataflow"
    match name:
        case "sequential":
            kernels.sequential_arrivals(steps)
        case "chain" | "ring_broadcast":
            kernels.chains_arrivals(1, 1, steps)
        case "multi_chain":
            kernels.chains_arrivals(int(options["chains"]), int(options["sources"]), steps)
        case "binomial_tree":
            kernels.binomial_tree_arrivals(pipelined, steps)
        case "binary_tree":
            kernels.binary_tree_arrivals(steps)
        case "faasnet_tree":
            kernels.level_tree_arrivals(fibonacci_tree(nodes)[1], pipelined, steps)
        case "sharded":
            hosts_and_share(nodes, cut, options["lanes"])
            kernels.sharded_arrivals(int(options["lanes"]), pipelined, steps)
        case "k_way":
            _k_way_arrivals(steps, blocks, **options)
        case "binomial_pipeline":
            binomial_pipeline_arrivals(steps)
        case _:
            raise NotImplementedError(f"no closed form of the arrivals of schedule {name!r} is written down here")
    return steps


def check_run(run: str) -> None:
    """Refuse a way to run that does not exist."""
    if run not in get_args(Run):
        raise UnknownName("run", run, get_args(Run))


def _k_way_arrivals(steps: np.ndarray, blocks: int, sources: int, order: BlockOrder, parts: int) -> None:
    for group, members in enumerate(sub_groups(steps.shape[0], sources)):
        sent = sent_order(group, sources, blocks, order, parts)
        inside = np.zeros((len(members), steps.shape[1]), dtype=np.int64)
        if len(members) > 1:
            binomial_pipeline_arrivals(inside)
        steps[np.ix_(members, sent)] = inside


def completion(
    name: str, nodes: int, blocks: int, total_bytes: float, cost: Hockney, run: Run = "dataflow", **options
) -> pl.DataFrame:
    """When each node holds everything, on equal links.

    Parameters:
        name, nodes, blocks, run, options: as in `arrival_steps`.
        total_bytes: the whole message.
        cost: α and B of every link.

    Returns:
        a table `node, steps, complete_s`, one row a node; sources read 0.
    """
    total_bytes, cost = positive(total_bytes, "total_bytes"), only_hockney(cost)
    arrival = arrival_steps(name, nodes, blocks, run, **options)
    complete = np.empty(nodes, dtype=np.int64)
    last_arrivals(arrival, complete)
    step_s = cost.travel_s(total_bytes / arrival.shape[1])
    return pl.DataFrame({"node": np.arange(nodes), "steps": complete, "complete_s": complete * step_s})
