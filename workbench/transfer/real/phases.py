"""The phases of a real multicast: the run as planned, and what the survivors of a loss do after it."""

from typing import NamedTuple

import numpy as np

from workbench.executor.driving import Drive
from workbench.executor.faults import BlocksLost, ProcessLost
from workbench.executor.lookout import Loss
from workbench.transfer.policy import replan
from workbench.transfer.real.outcome import Recovery
from workbench.transfer.real.planning import Job


class Phase(NamedTuple):
    """One schedule and how its run ended."""

    job: Job
    drive: Drive


def remaining(phase: Phase) -> tuple[Job, dict[int, tuple[int, ...]]]:
    """What the survivors of a loss still have to move, and what each of them holds.

    Errors: `BlocksLost` when nobody left holds some block.
    """
    schedule, gone = phase.job.schedule, {loss.node for loss in phase.drive.losses}
    held = {node: tuple(report.held) for node, report in sorted(phase.drive.reports.items()) if node not in gone}
    has = np.zeros((schedule.nodes, schedule.blocks), dtype=bool)
    for node, blocks in held.items():
        has[node, list(blocks)] = True
    if lost := np.flatnonzero(~has.any(axis=0)).tolist():
        loss = phase.drive.losses[0]
        raise BlocksLost(loss.node, loss.kind, *_times(phase.drive, loss), lost)
    return phase.job._replace(schedule=replan(schedule, gone, has)), held


def lost(phase: Phase) -> ProcessLost:
    """The error in which a multicast ends that is not to go on after a loss."""
    schedule, drive = phase.job.schedule, phase.drive
    receivers = {node: report for node, report in drive.reports.items() if node not in schedule.holders}
    complete = sum(len(report.held) == schedule.blocks for report in receivers.values())
    rest = (
        f"the multicast was called off with {complete} of {schedule.nodes - len(schedule.holders)} receivers complete; "
        "run it again, or let the others complete with on_fault='replan'"
    )
    return ProcessLost(drive.losses[0].node, drive.losses[0].kind, *_times(drive, drive.losses[0]), rest)


def lost_again(phase: Phase) -> ProcessLost:
    """The error in which a multicast ends when another process is lost while the survivors complete."""
    loss = phase.drive.losses[0]
    rest = "the others were completing after an earlier loss and gave up; run the multicast again"
    return ProcessLost(loss.node, loss.kind, *_times(phase.drive, loss), rest)


def recovery(first: Phase, second: Phase) -> Recovery:
    """The record of a completion after a loss."""
    start_s, loss = first.drive.start_s, first.drive.losses[0]
    noticed_s, detected_s = _times(first.drive, loss)
    return Recovery(
        node=loss.node,
        kind=loss.kind,
        fault_s=None if loss.fault_s is None else loss.fault_s - start_s,
        noticed_s=noticed_s,
        detected_s=detected_s,
        resumed_s=second.drive.start_s - start_s,
        blocks_moved=len(second.job.schedule.block),
    )


def _times(run: Drive, loss: Loss) -> tuple[float, float | None]:
    return loss.noticed_s - run.start_s, None if loss.fault_s is None else loss.noticed_s - loss.fault_s
