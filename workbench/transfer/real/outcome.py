"""What a real multicast leaves behind."""

from typing import Literal

import polars as pl

from workbench.errors import WorkbenchError
from workbench.executor.clock import Clock
from workbench.executor.scale import Scale, times_show
from workbench.records import Record

Path = Literal["loopback", "memory"]
"""How a block gets from one process to another: through a socket on the loopback interface, or by one copy out of the
sender's shared memory."""


class Recovery(Record):
    """How the survivors of a lost process completed.

    Attributes:
        node: the node that was lost.
        kind: "died" or "hung".
        fault_s: when the drill struck, seconds after the start; None when the process went by itself.
        noticed_s: when the loss was noticed, seconds after the start.
        detected_s: from the fault to its notice; None as `fault_s`.
        resumed_s: when the survivors started again, in a new group and by a new schedule.
        blocks_moved: transfers of the new schedule.
    """

    node: int
    kind: Literal["died", "hung"]
    fault_s: float | None
    noticed_s: float
    detected_s: float | None
    resumed_s: float
    blocks_moved: int


class RealMulticast(Record):
    """One real multicast, with bytes verified on every node that took part to the end.

    Attributes:
        schedule: name of the schedule.
        nodes, blocks, message_bytes: what was multicast.
        clock, path: how time was kept and how bytes moved.
        seed: what the bytes were made from.
        transfers: one row a transfer that arrived, in order of start: start_s, end_s, source, target, block, bytes,
            kind, model, version, path; seconds after the agreed start.
        completion_s: for each node when it held everything; 0 for those that did from the start, NaN for lost nodes.
        wall_s: from the agreed start to the last receiver's last block.
        fingerprints: for each node SHA-256 over the SHA-256 of its blocks; all equal, "" for lost nodes.
        step_s: the shortest time that a link was asked to take for a block; NaN unpaced.
        lateness_mean_s, lateness_worst_s: how late blocks were handed on after their link would have delivered them,
            the machine's own part in the total; NaN unpaced.
        waiting_share: share of the wall time in which the processes used no processor, mean over nodes.
        recovery: what happened after a loss, None without one.
        scale: how bytes and seconds of the run stand to those of full size.
    """

    schedule: str
    nodes: int
    blocks: int
    message_bytes: int
    clock: Clock
    path: Path
    seed: int
    transfers: pl.DataFrame
    completion_s: tuple[float, ...]
    wall_s: float
    fingerprints: tuple[str, ...]
    step_s: float
    lateness_mean_s: float
    lateness_worst_s: float
    waiting_share: float
    recovery: Recovery | None = None
    scale: Scale = Scale()

    @property
    def overhead(self) -> float:
        """Mean lateness over the shortest step: under 5 % the machine kept up (NaN unpaced)."""
        return self.lateness_mean_s / self.step_s

    @property
    def full_size_s(self) -> float:
        """Wall time at full size: what the run took, without the stretching."""
        return self.wall_s / self.scale.theta

    @property
    def moved_bytes(self) -> int:
        """Bytes of all blocks that arrived."""
        return int(self.transfers["bytes"].sum())

    @property
    def label(self) -> str:
        """What the time shows: "paced" the schedule (the processes mostly waited for the clock), "busy" the machine."""
        return times_show(self.waiting_share)


class WrongBytes(WorkbenchError):
    """Blocks arrived whose bytes are not the source's.

    Attributes:
        wrong: the (node, block) pairs at fault.
    """

    def __init__(self, wrong: list[tuple[int, int]]):
        self.wrong = wrong
        node, block = wrong[0]
        others = f" ({len(wrong)} wrong blocks in all)" if len(wrong) > 1 else ""
        super().__init__(
            f"Node {node} holds wrong bytes in block {block}{others}: their hash differs from the source's; the "
            "multicast is not to be used, run it again."
        )
