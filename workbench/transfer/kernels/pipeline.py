"""Closed-form arrivals of the binomial pipeline, without building the schedule."""

from workbench.jit import kernel
from workbench.transfer.kernels.bits import distance_to_next, highest, ones


@kernel
def binomial_pipeline_arrivals(arrival_steps):
    """Fill int64[n, m] with the number of steps after which each node holds each block; the source's row is 0.

    On the hypercube vertex w gets block c in step c + msb(ρ) if ρ is odd or c the last block, else in step c + l; ρ is
    w turned right by c mod l inside its l bits (derived here from RDMC's schedule). A doubled vertex gives the block to
    its receiving node in that step; the twin gets it one step later, or, after a step along a set bit of w, one step
    after the next such step, at the latest in the last step.
    """
    nodes, blocks = arrival_steps.shape
    width = highest(nodes)
    vertices = 1 << width
    last = blocks + width - 1
    arrival_steps[0, :] = 0
    for vertex in range(1, vertices):
        pairs = ones(vertex)
        for block in range(blocks):
            turn = block % width
            turned = ((vertex >> turn) | (vertex << (width - turn))) & (vertices - 1)
            step = block + (highest(turned) if turned & 1 or block == blocks - 1 else width)
            if vertex > nodes - vertices:
                arrival_steps[vertex, block] = step + 1
                continue
            bit = step % width
            second = ((step // width) * pairs + ones(vertex & ((1 << bit) - 1))) % 2
            wait = 1
            if (vertex >> bit) & 1:
                wait += distance_to_next(vertex, bit, width)
            arrival_steps[vertex + second * (vertices - 1), block] = step + 1
            arrival_steps[vertex + (1 - second) * (vertices - 1), block] = min(step + wait, last) + 1


def binomial_arrival_slow(vertex: int, block: int, dimensions: int, blocks: int) -> int:
    """Slow twin for n = 2^dimensions: the step (from 0) in which a vertex gets a block, on its bits as text."""
    bits = format(vertex, f"0{dimensions}b")
    turn = block % dimensions
    turned = bits[dimensions - turn :] + bits[: dimensions - turn]
    if turned.endswith("1") or block == blocks - 1:
        return block + dimensions - 1 - turned.index("1")
    return block + dimensions
