"""What this machine can do at most: the ceilings that real runs are measured against and scaled to."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from workbench.executor.clock import Clock
from workbench.executor.driving import Drive, all_said, drive
from workbench.executor.gathering import gather
from workbench.executor.links import Receive, Send
from workbench.executor.processes import Pool, Worker
from workbench.executor.raw import copy_rate, raw_receive, raw_send
from workbench.executor.relay import Plan
from workbench.executor.watching import HEARTBEAT_S, StopWanted
from workbench.records import Asked, AtLeastOne, NotNegative, Positive, whole

LIMIT_S = 60.0
PROBE_STEP_S = 0.02
PROBE_STEPS = 20


class Ceilings(Asked):
    """Medians of three readings each (of five of copying), for one size of block; lateness is that of one run.

    Attributes:
        processes: how many processes shared the machine in `sum_bytes_per_s` and `lateness_s`.
        block_bytes: size of one message.
        raw_pair_bytes_per_s: one plain socket pair on the loopback interface.
        gloo_pair_bytes_per_s: one pair through the library that the executor uses, unpaced.
        sum_bytes_per_s: a chain through all processes, unpaced, added over its links.
        copy_bytes_per_s: copying memory, bytes copied per second.
        lateness_s: mean lateness of a block in a chain through all processes with steps of 20 ms.
    """

    processes: AtLeastOne
    block_bytes: AtLeastOne
    raw_pair_bytes_per_s: Positive
    gloo_pair_bytes_per_s: Positive
    sum_bytes_per_s: Positive
    copy_bytes_per_s: Positive
    lateness_s: NotNegative


def measure_ceilings(
    processes: int = 8,
    block_bytes: int = 1 << 22,
    total_bytes: int = 1 << 26,
    pool: Pool | None = None,
    stop: StopWanted = None,
) -> Ceilings:
    """How fast can this machine move bytes between processes, and how punctual is it?

    Parameters:
        processes: number of processes of the run to come, at least 2.
        block_bytes: size of one message.
        total_bytes: bytes moved per reading.
        pool: processes to use; by default some are started and ended.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `InputError` for impossible sizes; `RunFailed` when a process fails;
        `RunStopped` when `stop` says so.
    """
    processes = whole(processes, "processes", 2)  # a link has two ends
    block_bytes = whole(block_bytes, "block_bytes", 1, whole(total_bytes, "total_bytes", 1))
    blocks = total_bytes // block_bytes
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(processes))
        workers = stack.enter_context(pool.lease(processes))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True)))

        def unpaced(members: Sequence[Worker], name: str) -> float:
            run = _chain(members, pool.beats, str(folder / name), (block_bytes,) * blocks, "unpaced", stop)
            return (len(members) - 1) * block_bytes * blocks / _seconds(run)

        probe = _chain(workers, pool.beats, str(folder / "probe"), (1 << 16,) * PROBE_STEPS, "stamped", stop)
        late_s = [
            arrival.end_s - arrival.deadline_s for report in probe.reports.values() for arrival in report.arrivals
        ]
        return Ceilings(
            processes=processes,
            block_bytes=block_bytes,
            raw_pair_bytes_per_s=median(
                _raw_pair(workers[:2], pool.beats, block_bytes, blocks, stop) for _ in range(3)
            ),
            gloo_pair_bytes_per_s=median(unpaced(workers[:2], f"pair{turn}") for turn in range(3)),
            sum_bytes_per_s=median(unpaced(workers, f"chain{turn}") for turn in range(3)),
            copy_bytes_per_s=_copy(workers[0], pool.beats, total_bytes, stop),
            lateness_s=sum(late_s) / len(late_s),
        )


def _raw_pair(pair: Sequence[Worker], beats, block_bytes: int, blocks: int, stop: StopWanted) -> float:
    receiver, sender = pair
    receiver.give(raw_receive, block_bytes, blocks)
    port = all_said([receiver], beats, LIMIT_S, stop)[receiver.number]
    sender.give(raw_send, block_bytes, blocks, port)
    all_said(pair, beats, LIMIT_S, stop)
    for worker in pair:
        worker.tell("go")
    seconds, _ = gather(pair, beats, LIMIT_S, stop)
    return block_bytes * blocks / seconds


def _copy(worker: Worker, beats, total_bytes: int, stop: StopWanted) -> float:
    worker.give(copy_rate, total_bytes)
    return gather([worker], beats, LIMIT_S, stop)[0]


def _chain(
    members: Sequence[Worker], beats, rendezvous: str, sizes: tuple[int, ...], clock: Clock, stop: StopWanted
) -> Drive:
    """Pass blocks down a chain of workers; the schedules of multicasts belong to a higher room."""
    plans = {}
    for rank, worker in enumerate(members):
        index = range(rank * len(sizes), (rank + 1) * len(sizes))
        last = rank == len(members) - 1
        plans[worker.number] = Plan(
            rendezvous=rendezvous,
            rank=rank,
            size=len(members),
            sizes=sizes,
            seed=0,
            holds=() if rank else tuple(range(len(sizes))),
            fresh=True,
            sends=()
            if last
            else tuple(Send(rank + 1, block, index[block], PROBE_STEP_S) for block in range(len(sizes))),
            receives=tuple(
                Receive(rank - 1, block, index[block] - len(sizes)) for block in range(len(sizes) if rank else 0)
            ),
            clock=clock,
            shared=False,
            timeout_s=LIMIT_S,
        )
    return drive(members, plans, beats, timeout_s=LIMIT_S, heartbeat_s=HEARTBEAT_S, stop=stop)


def _seconds(run: Drive) -> float:
    return max(arrival.end_s for report in run.reports.values() for arrival in report.arrivals) - run.start_s
