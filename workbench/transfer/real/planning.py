"""From a schedule to what each process is to do."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, get_args

import numpy as np
import psutil

from workbench.errors import InputError, UnknownName, UserError
from workbench.executor.clock import Clock, check_clock
from workbench.executor.faults import Fault, Flip, Swap
from workbench.executor.links import Receive, Send
from workbench.executor.relay import Plan
from workbench.records import not_negative, whole
from workbench.transfer.policy import Schedule
from workbench.transfer.real.outcome import Path

MEMORY_SHARE = 0.5


class Job(NamedTuple):
    """One multicast as it was asked for.

    Attributes:
        schedule: the transfers.
        sizes: bytes of each block.
        bytes_per_s, alpha_s: rate of every link, float (nodes, nodes), and time on top; infinite and 0 when unpaced.
        clock, shared, seed: see `workbench.executor.relay.Plan`.
    """

    schedule: Schedule
    sizes: tuple[int, ...]
    bytes_per_s: np.ndarray
    alpha_s: float
    clock: Clock
    shared: bool
    seed: int

    @property
    def link_s(self) -> np.ndarray:
        """Seconds that a block takes on its link, float64 (transfers,) in the schedule's order."""
        rates = self.bytes_per_s[self.schedule.source, self.schedule.target]
        return self.alpha_s + np.asarray(self.sizes, dtype=float)[self.schedule.block] / rates


def job_of(
    schedule: Schedule,
    message_bytes: int,
    bytes_per_s: float | np.ndarray | None,
    alpha_s: float,
    clock: Clock,
    seed: int,
    path: Path,
) -> Job:
    """The job for the parameters of `run_multicast`, or an error that says which of them is at fault."""
    check_clock(clock)
    if path not in get_args(Path):
        raise UnknownName("path", path, get_args(Path))
    paced = clock != "unpaced"
    if paced and bytes_per_s is None:
        raise UserError(f"A multicast on the {clock} clock needs the rate of its links; give bytes_per_s.")
    if paced and path == "memory":
        raise UserError("Shared memory has no links to pace; use clock='unpaced' with path='memory'.")
    if path == "memory" and not hasattr(os, "memfd_create"):
        raise UserError("A multicast through shared memory needs Linux; use path='loopback'.")
    seed, alpha_s = whole(seed, "seed"), not_negative(alpha_s, "alpha_s")
    message_bytes = whole(message_bytes, "message_bytes")
    sizes = block_sizes(message_bytes, schedule.blocks)
    _check_memory(schedule.nodes, message_bytes)
    rates = _rates(schedule, bytes_per_s if paced else np.inf, paced)
    return Job(schedule, sizes, rates, alpha_s if paced else 0.0, clock, path == "memory", seed)


def block_sizes(message_bytes: int, blocks: int) -> tuple[int, ...]:
    """Bytes of each block: equal, the first ones a byte longer where the message does not divide evenly.

    >>> block_sizes(10, 4)
    (3, 3, 2, 2)
    """
    if message_bytes < blocks:
        raise InputError(
            f"is {message_bytes} for {blocks} blocks", "give at least one byte a block", field="message_bytes"
        )
    share, rest = divmod(message_bytes, blocks)
    return (share + 1,) * rest + (share,) * (blocks - rest)


def _rates(schedule: Schedule, bytes_per_s: float | np.ndarray, finite: bool) -> np.ndarray:
    try:
        rates = np.asarray(bytes_per_s, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError("is no number", "give bytes/s as a number", field="bytes_per_s") from None
    square = (schedule.nodes, schedule.nodes)
    if rates.shape not in ((), square):
        remedy = f"give one number, or {square[0]} x {square[1]} numbers by source and target"
        raise InputError(f"has shape {rates.shape}", remedy, field="bytes_per_s")
    rates = np.broadcast_to(rates, square)
    used = rates[schedule.source, schedule.target]
    if finite and not (np.isfinite(used) & (used > 0)).all():
        raise InputError("holds a value that is not above 0", "give a finite rate for every link", field="bytes_per_s")
    return rates


def _check_memory(nodes: int, message_bytes: int) -> None:
    """Refuse a message that would not leave half of the free memory free."""
    free_bytes = psutil.virtual_memory().available
    if nodes * message_bytes > MEMORY_SHARE * free_bytes:
        raise InputError(
            f"is {message_bytes} on {nodes} nodes, {nodes * message_bytes / 1e9:.1f} GB where half of the free memory "
            f"is {MEMORY_SHARE * free_bytes / 1e9:.1f} GB",
            "scale the message down",
            field="message_bytes",
        )


def check_fault(fault: Fault, schedule: Schedule) -> None:
    """Refuse a planted fault that could not happen in this schedule."""
    if fault.node >= schedule.nodes:
        raise InputError(f"is {fault.node}", f"name one of the {schedule.nodes} nodes", field="fault.node")
    if isinstance(fault, Flip | Swap):
        arriving = set(schedule.block[schedule.target == fault.node].tolist())
        for block in (fault.block,) if isinstance(fault, Flip) else (fault.block, fault.other):
            if block not in arriving:
                raise InputError(f"is {block}", f"name a block that node {fault.node} receives", field="fault.block")


def plans(
    job: Job,
    held: Mapping[int, Sequence[int]],
    rendezvous: str,
    timeout_s: float,
    *,
    fresh: bool,
    fault: Fault | None = None,
) -> dict[int, Plan]:
    """The plan of every node that takes part.

    Parameters:
        job: what is multicast.
        held: for each node that takes part, the blocks it has at the start.
        rendezvous: where they meet.
        timeout_s: longest time the run may take.
        fresh: whether nodes make what they hold from the seed; else they keep what the last run left them.
        fault: a fault planted in blocks that arrive.
    """
    schedule = job.schedule
    ranks = {node: rank for rank, node in enumerate(held)}
    sends: dict[int, list[Send]] = {node: [] for node in held}
    receives: dict[int, list[Receive]] = {node: [] for node in held}
    columns = (schedule.source, schedule.target, schedule.block, job.link_s)
    for index, (source, target, block, link_s) in enumerate(zip(*map(np.ndarray.tolist, columns), strict=True)):
        sends[source].append(Send(ranks[target], block, index, link_s))
        receives[target].append(Receive(ranks[source], block, index))
    return {
        node: Plan(
            rendezvous=rendezvous,
            rank=ranks[node],
            size=len(ranks),
            sizes=job.sizes,
            seed=job.seed,
            holds=tuple(held[node]),
            fresh=fresh,
            sends=tuple(sends[node]),
            receives=tuple(receives[node]),
            clock=job.clock,
            shared=job.shared,
            timeout_s=timeout_s,
            faults=(fault,) if isinstance(fault, Flip | Swap) and fault.node == node else (),
        )
        for node in held
    }
