"""Run a multicast among real processes, and complete it without a node that is lost on the way."""

import hashlib
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import numpy as np

from workbench.errors import UnknownName, UserError
from workbench.executor.blocks import block_bytes
from workbench.executor.clock import Clock
from workbench.executor.driving import drive
from workbench.executor.faults import Fault, Kill, Stop
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.relay import digests
from workbench.executor.watching import HEARTBEAT_S, StopWanted
from workbench.records import positive
from workbench.transfer.policy import Schedule, check
from workbench.transfer.real import outcome
from workbench.transfer.real.phases import Phase, lost, lost_again, remaining
from workbench.transfer.real.planning import check_fault, job_of, plans
from workbench.transfer.real.reporting import report, verify

SPARE_S = 30.0


def run_multicast(
    schedule: Schedule,
    message_bytes: int,
    bytes_per_s: float | np.ndarray | None = None,
    alpha_s: float = 0.0,
    clock: Clock = "real",
    seed: int = 0,
    fault: Fault | None = None,
    timeout_s: float | None = None,
    *,
    on_fault: Literal["fail", "replan"] = "fail",
    path: outcome.Path = "loopback",
    heartbeat_s: float = HEARTBEAT_S,
    pool: Pool | None = None,
    stop: StopWanted = None,
) -> outcome.RealMulticast:
    """How long does a multicast take when one process a node really moves the bytes?

    Every node is a process that walks its own lists of sends and receptions; there is no barrier between steps. A
    transfer starts when the sender's port and the receiver's port are free and the block is held, and takes
    alpha + bytes / B. The bytes are random but known from the seed, and every block is verified on every node. The
    result holds no formula: lay it beside one.

    Parameters:
        schedule: the transfers; checked before anything starts.
        message_bytes: bytes of the whole message, cut into the schedule's blocks.
        bytes_per_s: rate of every link, or float (nodes, nodes) by source and target; None only when unpaced.
        alpha_s: seconds that every transfer takes beside its bytes.
        clock: "real", "stamped" or "unpaced", see `workbench.executor.clock.Clock`.
        seed: what the bytes are made from.
        fault: a fault to plant, see `workbench.executor.faults`.
        timeout_s: longest time the run may take; by default as long as all transfers one after the other, and 30 s.
        on_fault: "fail" ends the run of the others in one error when a node is lost; "replan" lets them complete by
            another path, in a new group.
        path: "loopback" moves blocks through sockets, "memory" through shared memory (unpaced runs on Linux).
        heartbeat_s: silence after which a process counts as hung; a death is noticed within 0.1 s.
        pool: processes to use; by default some are started for this run and ended after it.
        stop: asked ten times a second, from the processes' start to the last hash, whether to give up; it returns true
            for that, or raises an error of its own. The processes of the run are then ended.

    Errors: `MissingExtra` without torch; `InputError` for impossible parameters or an invalid schedule; `ProcessLost`
        (`BlocksLost` where nobody else held a block) when a node is lost; `WrongBytes` when a hash differs;
        `RunFailed` when the run takes too long or a link fails; `RunStopped` when `stop` says so.

    Source: the recipe of real experiment R1 of the notes on λScale (§7), schedules of its §2.
    """
    check(schedule)
    job = job_of(schedule, message_bytes, bytes_per_s, alpha_s, clock, seed, path)
    if on_fault not in ("fail", "replan"):
        raise UnknownName("way to go on after a fault", on_fault, ("fail", "replan"))
    if fault is not None:
        check_fault(fault, schedule)
    limit_s = float(job.link_s.sum()) + SPARE_S if timeout_s is None else positive(timeout_s, "timeout_s")
    positive(heartbeat_s, "heartbeat_s")
    watching = {"timeout_s": limit_s, "heartbeat_s": heartbeat_s, "stop": stop}
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(schedule.nodes))
        workers = stack.enter_context(pool.lease(schedule.nodes))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True)))
        expected = [hashlib.sha256(block_bytes(seed, *block)).hexdigest() for block in enumerate(job.sizes)]
        every = tuple(range(schedule.blocks))
        held = {node: every if node in schedule.holders else () for node in range(schedule.nodes)}
        orders = plans(job, held, str(folder / "first"), limit_s, fresh=True, fault=fault)
        drills = (fault,) if isinstance(fault, Kill | Stop) else ()
        phases = [Phase(job, drive(workers, orders, pool.beats, drills, **watching))]
        if drills and not phases[0].drive.losses:
            raise UserError(f"The multicast was over before the fault at {fault.at_s:g} s; plan the fault earlier.")
        if phases[0].drive.losses:
            if on_fault == "fail":
                raise lost(phases[0])
            job, held = remaining(phases[0])
            workers = [worker for worker in workers if worker.number in held]
            orders = plans(job, held, str(folder / "second"), limit_s, fresh=False)
            phases += [Phase(job, drive(workers, orders, pool.beats, **watching))]
            if phases[1].drive.losses:
                raise lost_again(phases[1])
        for worker in workers:
            worker.give(digests)
        found = dict(zip(held, gather(workers, pool.beats, limit_s, stop), strict=True))
    verify(found, expected)
    return report(phases, message_bytes, path, found)
