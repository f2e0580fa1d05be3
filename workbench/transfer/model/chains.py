"""Chains over unequal links, in blocks and in small forwarding units, and the star they compete with."""

from collections.abc import Iterable, Sequence

import numpy as np

from workbench.errors import InputError
from workbench.records import not_negative, positive, shown, whole
from workbench.transfer.policy.schedule import LARGEST_COUNT, MOST_CELLS, MOST_NODES


def chain_of_blocks_s(hop_block_s: Sequence[float], blocks: int) -> np.ndarray:
    """When each node of a chain holds the whole message, if hop i takes the same time for every block.

    Σ t_i + (m-1) max t_i over the hops so far: exact for blocks that are stored before they are forwarded.

    Parameters:
        hop_block_s: seconds of one block over each hop.
        blocks: number of blocks m.

    Returns:
        float array, one entry a hop; the last one is the multicast's time.

    >>> chain_of_blocks_s([1, 2, 1], 4).tolist()
    [4.0, 9.0, 10.0]
    """
    times, blocks = _row(hop_block_s, "hop_block_s", positive), whole(blocks, "blocks", 1, LARGEST_COUNT)
    return np.cumsum(times) + (blocks - 1) * np.maximum.accumulate(times)


def forwarding_chain_s(
    total_bytes: float, bytes_per_s: Sequence[float], unit_bytes: float, alpha_s: Sequence[float] | float = 0.0
) -> np.ndarray:
    """When each target of a serial forwarding chain holds the whole message (BlitzScale §5.1).

    done(k) = Σ_{j≤k} α_j + Σ_{j<k} c/B_j + M / min_{j≤k} B_j: nearly the same for every k if the unit c is small.

    Parameters:
        total_bytes: payload M.
        bytes_per_s: B_j, bandwidth of the link into the j-th target.
        unit_bytes: c, what a node must have received before it forwards.
        alpha_s: latency of each hop, or one for all.

    Raises:
        InputError: a number that cannot be, or latencies that are not one a hop.

    >>> forwarding_chain_s(16.06e9, [12.5e9] * 8, 2 * 2**20).round(3).tolist()[-1]
    1.286
    """
    bandwidth = _row(bytes_per_s, "bytes_per_s", positive)
    latency = np.full(bandwidth.shape, not_negative(alpha_s, "alpha_s")) if np.isscalar(alpha_s) else alpha_s
    latency = _row(latency, "alpha_s", not_negative)
    if latency.shape != bandwidth.shape:
        raise InputError(f"has {len(latency)} entries for {len(bandwidth)} hops", "give one a hop", field="alpha_s")
    total_bytes = positive(total_bytes, "total_bytes")
    first_unit = positive(unit_bytes, "unit_bytes") / bandwidth
    return np.cumsum(latency) + np.cumsum(first_unit) - first_unit + total_bytes / np.minimum.accumulate(bandwidth)


def layer_ready_s(
    hops: int,
    layers: int,
    bytes_per_s: float,
    layer_bytes: float,
    embedding_bytes: float = 0.0,
    unit_bytes: float = 0.0,
    alpha_s: float = 0.0,
) -> np.ndarray:
    """When each target of a chain of equal links can use each layer: kα + (k-1)c/B + (e + l·m)/B.

    Parameters:
        hops, layers: number of targets k and of layers l.
        bytes_per_s: B of every link.
        layer_bytes, embedding_bytes: m and e; the embedding comes first.
        unit_bytes: forwarding unit c.
        alpha_s: latency per hop.

    Returns:
        float (hops, layers).
    """
    hops = whole(hops, "hops", 1, MOST_NODES)
    layers = whole(layers, "layers", 1, MOST_CELLS // hops)
    bytes_per_s, layer_bytes = positive(bytes_per_s, "bytes_per_s"), positive(layer_bytes, "layer_bytes")
    embedding_bytes = not_negative(embedding_bytes, "embedding_bytes")
    unit_bytes, alpha_s = not_negative(unit_bytes, "unit_bytes"), not_negative(alpha_s, "alpha_s")
    hop, layer = np.arange(1, hops + 1)[:, None], np.arange(1, layers + 1)[None, :]
    return hop * alpha_s + (hop - 1) * unit_bytes / bytes_per_s + (embedding_bytes + layer * layer_bytes) / bytes_per_s


def star_s(targets: int, total_bytes: float, bytes_per_s: float) -> float:
    """Seconds until the last of several targets has got the message straight from one source: n·M/B.

    >>> round(star_s(8, 16.06e9, 12.5e9), 2)
    10.28
    """
    targets = whole(targets, "targets", 1, MOST_NODES)
    return targets * positive(total_bytes, "total_bytes") / positive(bytes_per_s, "bytes_per_s")


def _row(values: Sequence[float] | np.ndarray, name: str, check) -> np.ndarray:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"is {shown(values)}", "give one number per hop", field=name)
    row = np.array([check(value, name) for value in values])
    if not len(row):
        raise InputError("is empty", "give one number per hop", field=name)
    return row
