"""Weights race a stream of KV on one link, for real: in the same direction they take turns, in opposite ones not."""

import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
from pydantic import ConfigDict

from workbench.errors import UserError
from workbench.executor.driving import LEAD_S, all_said
from workbench.executor.faults import RunFailed
from workbench.executor.gathering import gather
from workbench.executor.instances.racing import RacePlan, Transfer, race
from workbench.executor.processes import Pool
from workbench.executor.scale import LARGEST_THETA, Scale, times_show
from workbench.executor.watching import StopWanted
from workbench.records import Record
from workbench.scaling.model.interference import SharedLink
from workbench.scaling.model.link_race import race_times

PREFILL, DECODE, TARGET = range(3)
SHORTEST_KV_S = 0.15
"""A KV transfer alone takes at least this long here: 15 pieces, so that it is a flow and not a lump."""

WEIGHT_BYTES = 1 << 23
SPARE_S = 30.0


class LinkRace(Record):
    """One race, at full size.

    Attributes:
        load_s: seconds of the load of weights.
        kv_s: float64[k], seconds of each KV transfer.
        scale: how bytes and seconds of the run stand to those of full size.
        overhead: mean lateness of a transfer's end over the time that a KV transfer takes alone.
        waiting_share: share of the time in which the processes used no processor, mean over nodes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    load_s: float
    kv_s: np.ndarray
    scale: Scale
    overhead: float
    waiting_share: float

    @property
    def label(self) -> str:
        """What the times show: "paced" the plan (the processes mostly waited for the link), "busy" the machine."""
        return times_show(self.waiting_share)


def race_on_link(
    link: SharedLink, kv_at_s: Sequence[float], *, pool: Pool | None = None, stop: StopWanted = None
) -> LinkRace:
    """How long do a load of weights and KV transfers take that really share a paced link?

    Three processes: a prefill instance, whose KV goes to a decode instance, and a target that loads weights from either
    of them. Every node's way out carries one piece of 10 ms after the other, in the order in which flows post them;
    each flow has two posted. Nobody computes who gets what share.

    Parameters:
        link, kv_at_s: as of `workbench.scaling.model.link_race.race_times`, which predicts the same race.
        pool: processes to use; by default three are started and ended.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `UserError` where time would have to be stretched more than 100 times;
        `RunFailed` when a process fails or other bytes arrive than were sent; `RunStopped` when `stop` says so.
    """
    kv_alone_s = link.kv_bytes / link.bytes_per_s
    theta = max(1.0, SHORTEST_KV_S / kv_alone_s) if len(kv_at_s) else 1.0
    if theta > LARGEST_THETA:
        raise UserError(
            f"A KV transfer takes {kv_alone_s:.3g} s at full size and at least {SHORTEST_KV_S:g} s here: time would "
            f"have to be stretched {theta:.0f} times, more than {LARGEST_THETA:.0f}; take larger batches."
        )
    scale = Scale(sigma=link.weight_bytes / WEIGHT_BYTES, theta=theta)
    before_s = -min(0.0, *kv_at_s) if len(kv_at_s) else 0.0

    def transfer(number: int, node: int, at_s: float, size: float) -> Transfer:
        seconds = size / link.bytes_per_s
        return Transfer(number, node, theta * (at_s + before_s), max(1, scale.bytes(size)), theta * seconds)

    sends: dict[int, list[Transfer]] = {node: [] for node in (PREFILL, DECODE, TARGET)}
    sends[PREFILL if link.same_direction else DECODE].append(transfer(0, TARGET, 0.0, link.weight_bytes))
    sends[PREFILL] += [transfer(number, DECODE, at_s, link.kv_bytes) for number, at_s in enumerate(kv_at_s, start=1)]
    predicted = race_times(link, kv_at_s)
    last_s = max([predicted.load_s, *(np.array(kv_at_s) + predicted.kv_s)]) + before_s
    limit_s = SPARE_S + 3 * theta * last_s
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(3))
        workers = stack.enter_context(pool.lease(3))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True))
        for worker in workers:
            reach = {PREFILL: 0, DECODE: len(kv_at_s), TARGET: 1}[worker.number]
            worker.give(race, RacePlan(folder, tuple(sends[worker.number]), reach))
        all_said(workers, pool.beats, limit_s, stop)
        start_s = time.monotonic() + LEAD_S
        for worker in workers:
            worker.tell(start_s)
        all_said(workers, pool.beats, limit_s, stop)
        for worker in workers:
            worker.tell("end")
        reports = gather(workers, pool.beats, limit_s, stop)
    reached = {one.number: one for report in reports for one in report.reached}
    sent = {number: digest for report in reports for number, digest in report.sent.items()}
    if wrong := [number for number, one in reached.items() if one.digest != sent[number]]:
        raise RunFailed(f"Transfer {wrong[0]} arrived with other bytes than were sent.")
    begun_s = {one.number: start_s + one.start_s for node in sends.values() for one in node}
    taken_s = [(reached[number].end_s - begun_s[number]) / theta for number in sorted(reached)]
    wall_s = max(one.end_s for one in reached.values()) - start_s
    late_s = np.mean([one.late_s for one in reached.values()])
    return LinkRace(
        load_s=taken_s[0],
        kv_s=np.array(taken_s[1:]),
        scale=scale,
        overhead=float(late_s / (theta * (kv_alone_s if len(kv_at_s) else predicted.load_s))),
        waiting_share=max(0.0, 1.0 - sum(report.busy_s for report in reports) / len(reports) / wall_s),
    )
