"""Closed-form arrivals of all schedules but the binomial pipeline.

Every kernel fills int64[n, m] with the number of steps after which a node holds a block on equal links, 0 where it held
the block at first. `pipelined` is true for a dataflow run and false for lock step; where it is missing both are equal.
The slow twin of all of them is `slow.dataflow_slow` or `slow.barrier_slow` over the schedule's own transfers.
"""

from workbench.jit import kernel
from workbench.transfer.kernels.bits import highest, ones


@kernel
def sequential_arrivals(arrival_steps):
    """Node i gets block b in its turn: after (i-1)m + b + 1 steps."""
    nodes, blocks = arrival_steps.shape
    arrival_steps[0, :] = 0
    for node in range(1, nodes):
        for block in range(blocks):
            arrival_steps[node, block] = (node - 1) * blocks + block + 1


@kernel
def binomial_tree_arrivals(pipelined, arrival_steps):
    """In lock step node w gets its blocks in stage msb(w). Run as dataflow, it need not wait for a stage to begin.

    A node forwards from its first block on and serves its children one whole message after another, so node w with p
    set bits, the highest being s, starts to receive after p - 1 + m(s + 1 - p) steps.
    """
    nodes, blocks = arrival_steps.shape
    arrival_steps[0, :] = 0
    for node in range(1, nodes):
        stage = highest(node)
        begins = stage * blocks
        if pipelined:
            begins = ones(node) - 1 + blocks * (stage + 1 - ones(node))
        for block in range(blocks):
            arrival_steps[node, block] = begins + block + 1


@kernel
def binary_tree_arrivals(arrival_steps):
    """Node v gets block j after 2j + d(v) steps; in d each left turn from the root counts 1 and each right one 2."""
    nodes, blocks = arrival_steps.shape
    pace = 2 if nodes > 2 else 1
    arrival_steps[0, :] = 0
    for node in range(1, nodes):
        lag = highest(node + 1) + ones(node + 1) - 1
        for block in range(blocks):
            arrival_steps[node, block] = pace * block + lag


@kernel
def level_tree_arrivals(level, pipelined, arrival_steps):
    """FaaSNet's tree: a node of level v gets block c after 2c + v steps.

    The source sets the pace of two steps a block. It has one child only for n = 2, and for n = 3 where lock step keeps
    the idle turn and a dataflow run does not.
    """
    nodes, blocks = arrival_steps.shape
    pace = 1 if nodes == 2 or (nodes == 3 and pipelined) else 2
    arrival_steps[0, :] = 0
    for node in range(1, nodes):
        for block in range(blocks):
            arrival_steps[node, block] = pace * block + level[node]


@kernel
def chains_arrivals(chains, sources, arrival_steps):
    """c chains fed by one source in turn, or each by its own; one chain from one source is the plain chain."""
    nodes, blocks = arrival_steps.shape
    arrival_steps[:sources, :] = 0
    pace = 1 if sources == chains else chains
    for node in range(sources, nodes):
        chain, place = (node - sources) % chains, (node - sources) // chains
        begins = place + 1 + (0 if sources == chains else chain)
        for block in range(blocks):
            arrival_steps[node, block] = pace * block + begins


@kernel
def sharded_arrivals(lanes, pipelined, arrival_steps):
    """Lane chains, then the local ring, with one port a node.

    As dataflow a host starts its ring when its own accelerators have nothing left to receive and to send on; in lock
    step all hosts start when the last one has its shares.
    """
    nodes, blocks = arrival_steps.shape
    hosts, share = nodes // lanes, blocks // lanes
    arrival_steps[:lanes, :] = 0
    for node in range(lanes, nodes):
        host, lane = node // lanes, node % lanes
        gathers = share + hosts - 2
        if pipelined and host < hosts - 1:
            gathers = share + host
        for block in range(blocks):
            piece, owner = block // lanes, block % lanes
            if owner == lane:
                arrival_steps[node, block] = host + piece
            else:
                arrival_steps[node, block] = gathers + piece * (lanes - 1) + (lane - owner - 1) % lanes + 1
