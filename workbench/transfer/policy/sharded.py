"""Sharded lanes: every accelerator pair of two hosts carries its own share, then the hosts gather the shares."""

import numpy as np

from workbench.errors import InputError
from workbench.records import whole
from workbench.transfer.policy.schedule import Schedule, check_cells, from_columns


def sharded(nodes: int, blocks: int, lanes: int = 2) -> Schedule:
    """g chains from host to host, each carrying 1/g of the blocks over its own NIC, then a ring all-gather per host.

    Node number = host·lanes + lane; every accelerator of host 0 holds everything. Blocks lane, lane + g, lane + 2g, …
    travel down the chain of that lane; then each host passes its shares round its local ring (BlitzScale §5.1,
    Figure 14, and §6.3). As steps of one port the two phases follow each other: m + H - 2 steps for H
    hosts. Run with separate ports for the NIC and the local fabric, they overlap as far as the links allow.

    Parameters:
        nodes: accelerators over all hosts, a multiple of `lanes`, at least two hosts.
        blocks: blocks of the whole message, a multiple of `lanes`.
        lanes: accelerators per host g.

    >>> sharded(8, 16, lanes=4).steps
    16
    """
    nodes, blocks = check_cells(nodes, blocks)
    hosts, share = hosts_and_share(nodes, blocks, lanes)
    hop, lane, piece = (grid.ravel() for grid in np.indices((hosts - 1, lanes, share)))
    sent = (hop + piece, hop * lanes + lane, (hop + 1) * lanes + lane, piece * lanes + lane)
    host, lane, piece, turn = (grid.ravel() for grid in np.indices((hosts - 1, lanes, share, lanes - 1)))
    host = host + 1
    gathered = (
        share + hosts - 2 + piece * (lanes - 1) + turn,
        host * lanes + lane,
        host * lanes + (lane + 1) % lanes,
        piece * lanes + (lane - turn) % lanes,
    )
    columns = (np.concatenate(pair) for pair in zip(sent, gathered, strict=True))
    return from_columns("sharded", nodes, blocks, tuple(range(lanes)), *columns)


def hosts_and_share(nodes: int, blocks: int, lanes: int) -> tuple[int, int]:
    """Number of hosts and blocks per lane, or an `InputError` where the accelerators or the blocks do not divide."""
    nodes, lanes = whole(nodes, "nodes", 1), whole(lanes, "lanes", 1)
    if nodes % lanes or nodes < 2 * lanes:
        problem = f"is {nodes} where sharded lanes need at least two hosts of {lanes} accelerators each"
        raise InputError(problem, "make nodes a multiple of lanes", field="nodes")
    if whole(blocks, "blocks", 1) % lanes:
        problem = f"is {blocks} where it is to divide into {lanes} equal shares"
        raise InputError(problem, "make blocks a multiple of lanes", field="blocks")
    return nodes // lanes, blocks // lanes
