"""What more sources buy: the first joint copy, the first pipeline, and full replication, in steps."""

import numpy as np

from workbench.errors import InputError
from workbench.records import Record
from workbench.transfer.kernels.coverage import joint_copy
from workbench.transfer.model.arriving import arrival_steps
from workbench.transfer.policy import first_pipeline, sub_groups
from workbench.transfer.policy.k_way import BlockOrder


class KWaySteps(Record):
    """Steps of a k-way multicast until three things hold.

    Attributes:
        joint_copy: the destinations together hold every block.
        one_per_group: one destination of each sub-group suffices for that, so the first pipeline can form.
        complete: every node holds every block.
    """

    joint_copy: int
    one_per_group: int
    complete: int


def k_way_steps(nodes: int, blocks: int, sources: int, order: BlockOrder = "contiguous") -> KWaySteps:
    """The three milestones of scaling from k copies to N nodes (λScale §4.2; Figure 5 is N = 8, k = 2, b = 4).

    Parameters: as in `policy.k_way`.

    >>> k_way_steps(8, 4, 2)
    KWaySteps(joint_copy=2, one_per_group=3, complete=5)
    """
    return milestones_of(arrival_steps("k_way", nodes, blocks, sources=sources, order=order), sources)


def milestones_of(arrival: np.ndarray, sources: int) -> KWaySteps:
    """The same three milestones from any arrivals, int (nodes, blocks), of a k-way multicast: simulated ones, say."""
    arrival = np.asarray(arrival)
    if arrival.ndim != 2 or not arrival.size or arrival.dtype.kind not in "iuf":
        remedy = "give one row a node and one column a block"
        raise InputError(f"has the shape {arrival.shape}", remedy, field="arrival")
    if not (np.isfinite(arrival) & (np.abs(arrival) < 2**53)).all():
        raise InputError("holds a block that never arrives", "give a multicast that completes", field="arrival")
    groups = [members[1:] for members in sub_groups(len(arrival), sources)]
    return KWaySteps(
        joint_copy=int(joint_copy(np.ascontiguousarray(arrival, dtype=np.int64), sources)),
        one_per_group=first_pipeline(arrival, groups),
        complete=int(np.max(arrival)),
    )
