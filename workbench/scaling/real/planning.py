"""From a scale-out to what each node is told, before anything is lost and after."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.executor.faults import BlocksLost, Fault, Flip, ProcessLost, Swap
from workbench.executor.links import Receive, Send
from workbench.executor.scale import Scale
from workbench.executor.transformer import ModelFiles
from workbench.executor.transformer_serving.orders import NodePlan, Pace, Replace, Route, Segment
from workbench.scaling.model import Formed, ScaleOut, scale_out
from workbench.scaling.model.scale_out import ORDERS
from workbench.scaling.real.manager import PhaseEnd
from workbench.scaling.real.outcome import Mode, Prompt
from workbench.transfer.policy import Schedule, k_way, replan


class Operation(NamedTuple):
    """One run as it was asked for; see `workbench.scaling.real.live.serve_while_loading`."""

    asked: ScaleOut
    model: ModelFiles
    prompts: tuple[Prompt, ...]
    pace: Pace
    scale: Scale
    mode: Mode
    held: tuple[ModelFiles, ...]
    device: str

    @property
    def sources(self) -> int:
        """Nodes that send from the start: 0 to this, not included."""
        return min(self.asked.sources, self.asked.targets)

    @property
    def targets(self) -> list[int]:
        """Nodes that are filled, and serve."""
        return list(range(self.sources, self.nodes))

    @property
    def nodes(self) -> int:
        """All of them."""
        return self.sources + self.asked.targets

    @property
    def capacity(self) -> int:
        """Most tokens of a request."""
        return max(len(prompt.tokens) + prompt.output for prompt in self.prompts)

    def transfer_s(self, block: int) -> float:
        """Seconds that the run's links take for a block: σ times its bytes at full size, all times θ."""
        asked = self.asked
        full_s = asked.alpha_s + self.scale.sigma * self.model.blocks[block].size / asked.bytes_per_s
        return self.scale.seconds(full_s)


class PhasePlan(NamedTuple):
    """What is to be done in one phase.

    Attributes:
        operation: of which.
        schedule: the transfers.
        held: node -> blocks it has at the start, for every node that takes part.
        pipelines: routes that may serve before their members are complete.
        targets: nodes that serve.
        fresh: whether nodes begin with nothing but their files.
        faults: by the node that they are planted at.
    """

    operation: Operation
    schedule: Schedule
    held: dict[int, tuple[int, ...]]
    pipelines: tuple[Route, ...]
    targets: list[int]
    fresh: bool
    faults: dict[int, Flip | Swap | Replace]

    @property
    def link_s(self) -> float:
        """Seconds that all transfers would take one after the other."""
        return sum(map(self.operation.transfer_s, self.schedule.block.tolist()))

    def plans(self, rendezvous: str, timeout_s: float) -> dict[int, NodePlan]:
        """The plan of every node that takes part; `rendezvous` is where they meet."""
        operation, schedule = self.operation, self.schedule
        ranks = {node: rank for rank, node in enumerate(self.held)}
        sends: dict[int, list[Send]] = {node: [] for node in self.held}
        receives: dict[int, list[Receive]] = {node: [] for node in self.held}
        columns = (schedule.source.tolist(), schedule.target.tolist(), schedule.block.tolist())
        for index, (source, target, block) in enumerate(zip(*columns, strict=True)):
            sends[source].append(Send(ranks[target], block, index, operation.transfer_s(block)))
            receives[target].append(Receive(ranks[source], block, index))
        alone = tuple((Segment(node, 0, len(operation.model.blocks)),) for node in self.targets)
        return {
            node: NodePlan(
                rendezvous=rendezvous,
                rank=ranks[node],
                size=len(ranks),
                ranks=ranks,
                model=operation.model,
                files=self._files(node),
                holds=blocks,
                fresh=self.fresh,
                serves=node in self.targets,
                sends=tuple(sends[node]),
                receives=tuple(receives[node]),
                routes=self.pipelines + alone,
                capacity=operation.capacity,
                pace=operation.pace,
                theta=operation.scale.theta,
                device=operation.device,
                timeout_s=timeout_s,
                faults=tuple(fault for at, fault in self.faults.items() if at == node),
            )
            for node, blocks in self.held.items()
        }

    def _files(self, node: int) -> tuple[str, ...]:
        if not self.fresh or node >= self.operation.sources:
            return ()
        held = self.operation.held[node] if self.operation.held else self.operation.model
        return tuple(block.path for block in held.blocks)


def first_phase(operation: Operation, fault: Fault | Replace | None) -> PhasePlan:
    """The phase as it is asked for.

    Errors: `InputError` where sizes do not fit together, or a fault could not happen.
    """
    asked, model = operation.asked, operation.model
    if len(model.blocks) != asked.blocks * asked.parts:
        remedy = f"cut it into {asked.blocks} x {asked.parts}"
        raise InputError(f"has {len(model.blocks)} blocks", remedy, field="model")
    if not math.isclose(operation.scale.sigma, asked.weight_bytes / model.bytes, rel_tol=1e-9):
        remedy = f"give {asked.weight_bytes / model.bytes:.6g}, the full size over the model's"
        raise InputError(f"is {operation.scale.sigma:g}", remedy, field="scale.sigma")
    if operation.held and len(operation.held) != operation.sources:
        raise InputError(f"names {len(operation.held)} sources", f"name {operation.sources}", field="held")
    formed = scale_out(asked)
    order = ORDERS[asked.variant] if asked.reorder else "naive"
    schedule = k_way(operation.nodes, asked.blocks, formed.sending, order, asked.parts)
    every = tuple(range(len(model.blocks)))
    faults = {} if not isinstance(fault, Flip | Swap | Replace) else {fault.node: fault}
    if fault is not None:
        _check_fault(fault, schedule)
    return PhasePlan(
        operation=operation,
        schedule=schedule,
        held={node: every if node in schedule.holders else () for node in range(operation.nodes)},
        pipelines=routes_of(formed) if operation.mode == "pipelines" else (),
        targets=operation.targets,
        fresh=True,
        faults=faults,
    )


def second_phase(first: PhasePlan, end: PhaseEnd) -> PhasePlan:
    """What the survivors of a loss still have to do: complete each other, each serving alone when it is complete.

    Errors: `BlocksLost` when nobody left holds some block; `ProcessLost` when no target is left.
    """
    schedule, loss = first.schedule, end.losses[0]
    gone = {lost.node for lost in end.losses}
    held = {node: tuple(report.held) for node, report in sorted(end.reports.items()) if node not in gone}
    times = loss.noticed_s - end.start_s, None if loss.fault_s is None else loss.noticed_s - loss.fault_s
    has = np.zeros((schedule.nodes, schedule.blocks), dtype=bool)
    for node, blocks in held.items():
        has[node, list(blocks)] = True
    targets = [node for node in first.targets if node in held]
    if not targets:
        raise ProcessLost(loss.node, loss.kind, *times, "no node is left that could serve: start others")
    if lost := np.flatnonzero(~has.any(axis=0)).tolist():
        raise BlocksLost(loss.node, loss.kind, *times, lost)
    return first._replace(
        schedule=replan(schedule, gone, has), held=held, pipelines=(), targets=targets, fresh=False, faults={}
    )


def routes_of(formed: Formed) -> tuple[Route, ...]:
    """The dispatches of every pipeline of a scale-out, in transfer blocks; nodes are numbered with the sources."""
    return tuple(_route(pipeline.runs, formed.sending, formed.asked.parts) for pipeline in formed.pipelines)


def _route(runs: Sequence[int], sending: int, parts: int) -> Route:
    route: list[Segment] = []
    for block, target in enumerate(runs):
        if route and route[-1].node == target + sending:
            route[-1] = route[-1]._replace(count=route[-1].count + parts)
        else:
            route.append(Segment(target + sending, block * parts, parts))
    return tuple(route)


def _check_fault(fault: Fault | Replace, schedule: Schedule) -> None:
    if fault.node >= schedule.nodes:
        raise InputError(f"is {fault.node}", f"name one of the {schedule.nodes} nodes", field="fault.node")
    if isinstance(fault, Flip | Swap | Replace):
        arriving = set(schedule.block[schedule.target == fault.node].tolist())
        for block in (fault.block, fault.other) if isinstance(fault, Swap) else (fault.block,):
            if block not in arriving:
                raise InputError(f"is {block}", f"name a block that node {fault.node} receives", field="fault.block")
