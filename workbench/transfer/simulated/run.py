"""A multicast by simulation: flows on shared resources, with background traffic and deaths if wanted."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.errors import UserError
from workbench.queueing.simulated.clock import Clock
from workbench.records import not_negative
from workbench.transfer.model.arriving import Run, check_run
from workbench.transfer.model.network import Network, block_sizes
from workbench.transfer.policy import Schedule, held_of
from workbench.transfer.simulated.disturbance import Background, Death
from workbench.transfer.simulated.fabric import Fabric
from workbench.transfer.simulated.multicast import Multicast


class TransferRun(NamedTuple):
    """What a simulated multicast did.

    Attributes:
        transfers: every transfer, `start_s, end_s, source, target, block, bytes, kind, model, version, path`; one that
            was cut has the bytes moved till then and "lost" in its kind.
        links: `start_s, end_s, link, kind, bytes_per_s`, the load of each resource while it was not zero.
        completion: `node, complete_s`, NaN for a node that never held everything.
        arrival_s: float (nodes, blocks), when a node held a block: 0 for what it held at first, infinite for never.
        dead: nodes that died.
        plans: the schedule, and those that replaced it after a death.
    """

    transfers: pl.DataFrame
    links: pl.DataFrame
    completion: pl.DataFrame
    arrival_s: np.ndarray
    dead: tuple[int, ...]
    plans: tuple[Schedule, ...]

    @property
    def held(self) -> np.ndarray:
        """What each node holds at the end, bool (nodes, blocks)."""
        return np.isfinite(self.arrival_s)

    @property
    def finish_s(self) -> float:
        """When the last survivor held everything, NaN if one never did or nobody is left."""
        alive = self.completion.filter(~pl.col("node").is_in(list(self.dead)))["complete_s"].to_numpy()
        return float(alive.max()) if len(alive) else float("nan")


def simulate(
    schedule: Schedule,
    network: Network,
    block_bytes: float | Sequence[float],
    *,
    run: Run = "dataflow",
    held: np.ndarray | None = None,
    background: Sequence[Background] = (),
    deaths: Sequence[Death] = (),
    detect_s: float | None = None,
    model: str = "",
    version: str = "",
) -> TransferRun:
    """Run a schedule on a network whose links are shared max-min fairly by all flows, per direction.

    A transfer holds every resource on its path. Each node sends and receives its transfers in the schedule's order, one
    at a time (per port: the NIC and the fabric inside a host work independently).

    Parameters:
        schedule: a valid schedule (`policy.check`).
        network: at least as many nodes.
        block_bytes: size of every block, or one size a block.
        run: dataflow, or lock step.
        held: bool (nodes, blocks), what nodes hold at first beside the schedule's holders.
        background: other flows.
        deaths: nodes that die in a dataflow run; flows to and from them are cut.
        detect_s: time from a death until the survivors stop, re-plan from what they hold and complete each other; by
            default they do not re-plan but carry on as far as they can.
        model, version: for the table of transfers.

    Raises:
        `UnknownName` for an unknown run; `InputError` for a schedule that names what does not exist (whether it keeps
        the rules, `policy.check` says) and for sizes or holdings of another shape; `UserError` for what does not fit
        together; `WorkbenchError` when a block died with its last holder.
    """
    check_run(run)
    network.require(schedule)
    sizes = block_sizes(schedule, block_bytes)
    detect_s = None if detect_s is None else not_negative(detect_s, "detect_s")
    first = held_of(schedule, np.zeros((schedule.nodes, schedule.blocks)) if held is None else held)
    first[list(schedule.holders)] = True
    clock = Clock()
    names = [resource.name for resource in network.resources]
    fabric = Fabric(clock, [resource.bytes_per_s for resource in network.resources], names)
    multicast = Multicast(clock, fabric, network, sizes, first, (model, version))
    for traffic in background:
        if not (0 <= traffic.source < network.nodes and 0 <= traffic.target < network.nodes):
            raise UserError(f"Traffic from {traffic.source} to {traffic.target} leaves the {network.nodes} nodes.")
        clock.process(multicast.beside(traffic))
    for death in deaths:
        if run == "barrier" or not 0 <= death.node < schedule.nodes:
            raise UserError(f"Node {death.node} cannot die in this run; name a node of a dataflow run.")
        multicast.die(death.node, death.time_s, detect_s)
    if run == "barrier":
        clock.process(multicast.barrier(schedule))
    else:
        multicast.dataflow(schedule)
    clock.run()
    fabric.ledger.check_bytes()
    transfers, links = fabric.ledger.tables()
    complete = multicast.arrival_s.max(axis=1)
    complete_s = np.where(np.isfinite(complete), complete, np.nan)
    completion = pl.DataFrame({"node": np.arange(schedule.nodes), "complete_s": complete_s})
    return TransferRun(
        transfers, links, completion, multicast.arrival_s, tuple(sorted(multicast.dead)), tuple(multicast.plans)
    )
