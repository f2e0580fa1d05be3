"""Sharded lanes: a message that crosses hosts over many NICs at once and is gathered inside each host."""

import numpy as np

from workbench.records import Record, positive, whole
from workbench.transfer.policy import hosts_and_share
from workbench.transfer.policy.schedule import MOST_NODES


class TwoLevel(Record):
    """Seconds of a sharded transfer between two hosts, bandwidth terms only.

    Attributes:
        inter_host_s: every lane carries its share.
        all_gather_s: the shares go round the local ring.
        sequential_s: one after the other.
        overlapped_s: no implementation beats this, however well the two overlap.
    """

    inter_host_s: float
    all_gather_s: float
    sequential_s: float
    overlapped_s: float


def two_level(total_bytes: float, lanes: int, nic_bytes_per_s: float, local_bytes_per_s: float) -> TwoLevel:
    """M/(gB) over the NICs and (g-1)/g·M/B_local inside the host (BlitzScale §5.1, Figure 14).

    Parameters:
        total_bytes: M, the whole message.
        lanes: g, accelerators per host, each with a NIC of its own.
        nic_bytes_per_s, local_bytes_per_s: bandwidth of a NIC, and of an accelerator's port inside the host.
    """
    total_bytes, lanes = positive(total_bytes, "total_bytes"), whole(lanes, "lanes", 1, MOST_NODES)
    across = total_bytes / (lanes * positive(nic_bytes_per_s, "nic_bytes_per_s"))
    local = (lanes - 1) / lanes * total_bytes / positive(local_bytes_per_s, "local_bytes_per_s")
    return TwoLevel(
        inter_host_s=across, all_gather_s=local, sequential_s=across + local, overlapped_s=max(across, local)
    )


def lanes_completion_s(hosts: int, lanes: int, blocks: int, nic_block_s: float, local_block_s: float) -> np.ndarray:
    """When every accelerator of each host holds the message, NIC and local fabric working at the same time.

    Piece j of each lane reaches host h at (h + j) a; a round of the ring takes (g-1) b and starts when piece and ring
    are ready: done(h) = h·a + (q-1) max(a, (g-1)b) + (g-1)b for q = m/g pieces a lane.

    Parameters:
        hosts: number of hosts H, the source's included.
        lanes, blocks: g accelerators per host, m blocks in all, a multiple of g.
        nic_block_s, local_block_s: seconds a and b of one block between hosts and inside a host.

    Returns:
        float (hosts,); host 0 holds everything at 0.

    Raises:
        `InputError` for fewer than two hosts, blocks that do not divide into lanes, or times that are not above 0.
    """
    hosts, lanes = whole(hosts, "hosts", 2, MOST_NODES), whole(lanes, "lanes", 1, MOST_NODES)
    _, share = hosts_and_share(hosts * lanes, blocks, lanes)
    nic_block_s, local_block_s = positive(nic_block_s, "nic_block_s"), positive(local_block_s, "local_block_s")
    around = (lanes - 1) * local_block_s
    done = np.arange(hosts) * nic_block_s + (share - 1) * max(nic_block_s, around) + around
    done[0] = 0.0
    return done
