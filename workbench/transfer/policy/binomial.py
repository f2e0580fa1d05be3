"""The binomial pipeline: the fewest steps possible, for every number of nodes."""

import numpy as np

from workbench.transfer.policy.schedule import Schedule, check_cells, check_size, from_columns


def binomial_pipeline(nodes: int, blocks: int) -> Schedule:
    """Multicast in m - 1 + ⌈log2 n⌉ steps, which no schedule can beat (Ganesan and Seshadri 2005; RDMC).

    The 2^l vertices of a hypercube (l = ⌊log2 n⌋) exchange blocks along one dimension a step. Where n is not a power
    of two, vertex v of 1..n-2^l stands for two nodes, v and v + 2^l - 1: one takes what comes from outside while the
    other does the vertex's sending, they change roles after every step along a set bit of v, and the taking one
    passes what it got on to its twin; one last step of exchanges inside the pairs completes both.

    >>> binomial_pipeline(8, 16).steps, binomial_pipeline(12, 16).steps
    (18, 19)
    """
    nodes, blocks = check_cells(nodes, blocks)
    dimensions = nodes.bit_length() - 1
    vertices = 1 << dimensions
    doubled = nodes - vertices
    step, vertex, block = _vertex_arrivals(dimensions, blocks)
    partner = vertex ^ (1 << step % dimensions)
    if not doubled:
        return from_columns("binomial_pipeline", nodes, blocks, (0,), step, partner, vertex, block)

    def node(at, second):
        return np.where(second & (at >= 1) & (at <= doubled), at + vertices - 1, at)

    target = node(vertex, second_node_takes(vertex, step, dimensions))
    source = node(partner, ~second_node_takes(partner, step, dimensions))
    inside = (vertex >= 1) & (vertex <= doubled)
    at, taker = vertex[inside], target[inside]
    twin = 2 * at + vertices - 1 - taker
    passed_on = forward_step(at, step[inside], dimensions, last_step=blocks + dimensions - 1)
    return from_columns(
        "binomial_pipeline",
        nodes,
        blocks,
        (0,),
        np.concatenate([step, passed_on]),
        np.concatenate([source, taker]),
        np.concatenate([target, twin]),
        np.concatenate([block, block[inside]]),
    )


def shares_vertex(nodes: int) -> np.ndarray:
    """Which nodes of a binomial pipeline stand for a vertex of the hypercube together with a twin, bool (nodes,).

    None where n is a power of two; else, with 2^l the next power below, node v of 1..n-2^l and its twin v + 2^l - 1.

    >>> shares_vertex(6).tolist(), shares_vertex(4).any()
    ([False, True, True, False, True, True], np.False_)
    """
    nodes, _ = check_size(nodes, 1)
    vertices = 1 << (nodes.bit_length() - 1)
    node = np.arange(nodes)
    return ((node >= 1) & (node <= nodes - vertices)) | (node >= vertices)


def _vertex_arrivals(dimensions: int, blocks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Step, vertex and block of every arrival on the hypercube."""
    vertices = 1 << dimensions
    step, vertex = (grid.ravel() for grid in np.indices((blocks + dimensions - 1, vertices)))
    arriving = step - dimensions
    along = (vertex >> step % dimensions) & 1 == 1
    ahead = arriving + next_set_bit(vertex, step % dimensions, dimensions)
    block = np.where(along, np.minimum(ahead, blocks - 1), arriving)
    comes = (block >= 0) & (vertex > 0)
    return step[comes], vertex[comes], block[comes]


def next_set_bit(vertex: np.ndarray, bit: np.ndarray, dimensions: int) -> np.ndarray:
    """Cyclic distance (1..dimensions) from a bit position upward to the next set bit of a vertex number."""
    turned = (vertex >> bit) | (vertex << (dimensions - bit))
    turned = (turned >> 1) & ((1 << dimensions) - 1)
    return np.bitwise_count((turned & -turned) - 1) + 1


def second_node_takes(vertex: np.ndarray, step: np.ndarray, dimensions: int) -> np.ndarray:
    """Whether node v + 2^l - 1 of a doubled vertex v, and not v itself, receives from outside in a step."""
    rounds, bit = step // dimensions, step % dimensions
    return (rounds * np.bitwise_count(vertex) + np.bitwise_count(vertex & ((1 << bit) - 1))) % 2 == 1


def forward_step(vertex: np.ndarray, step: np.ndarray, dimensions: int, last_step: int) -> np.ndarray:
    """When a node of a doubled vertex passes on to its twin what it received from outside in a step.

    In the next step while it goes on receiving; after a step along a set bit the roles change, and it is its turn again
    one step after the next such step; the exchange in the last step takes what is left.
    """
    bit = step % dimensions
    wait = np.where((vertex >> bit) & 1 == 1, next_set_bit(vertex, bit, dimensions) + 1, 1)
    return np.minimum(step + wait, last_step)
