"""What a set of nodes holds together, and when everybody holds everything."""

from workbench.jit import kernel


@kernel
def last_arrivals(arrival, complete):
    """Fill `complete`[n] with the time after which each node holds all blocks; `arrival` is [n, m] of the same kind."""
    for node in range(arrival.shape[0]):
        latest = arrival[node, 0]
        for block in range(1, arrival.shape[1]):
            latest = max(latest, arrival[node, block])
        complete[node] = latest


@kernel
def joint_copy(arrival, first):
    """When nodes `first`, first + 1, … hold one copy *jointly*: the latest over blocks of the earliest holder."""
    latest = arrival[first:, 0].min()
    for block in range(1, arrival.shape[1]):
        latest = max(latest, arrival[first:, block].min())
    return latest


def last_arrivals_slow(arrival):
    """Slow twin of `last_arrivals`."""
    return [max(row) for row in arrival.tolist()]


def joint_copy_slow(arrival, first):
    """Slow twin of `joint_copy`."""
    return max(min(column) for column in zip(*arrival.tolist()[first:], strict=True))
