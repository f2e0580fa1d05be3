"""From a composition and jobs to what each server of a real run is told, and how far its time is stretched."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from workbench.chains.model.composing import Composition, running
from workbench.chains.model.hardware import TokenTimes
from workbench.chains.model.jobs import JobList
from workbench.chains.policy import Dispatch
from workbench.chains.real.orchestrator import Asked
from workbench.errors import InputError, UserError
from workbench.executor.chain_serving.orders import ServerPlan
from workbench.executor.faults import Kill, Stop, Swap
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.scale import LARGEST_THETA, ROOM, SHORTEST_STEP_S
from workbench.executor.transformer import Shape
from workbench.executor.transformer_serving.timing import pass_seconds
from workbench.executor.watching import StopWanted

LIMIT_S = 60.0


class Work(NamedTuple):
    """A run at full size, checked; see `workbench.chains.real.running.serve_chains`.

    Attributes:
        prompts, outputs: of each job its tokens, and how many it is to say.
        servers: numbers of the servers that host something.
    """

    composition: Composition
    times: TokenTimes
    jobs: JobList
    shape: Shape
    seed: int
    policy: Dispatch | Callable
    batched: bool
    fault: Kill | Stop | Swap | None
    prompts: tuple[tuple[int, ...], ...]
    outputs: tuple[int, ...]
    servers: tuple[int, ...]

    @property
    def usual(self) -> np.ndarray:
        """The mean job's work."""
        return self.jobs.work.mean(axis=0)

    @property
    def longest_s(self) -> float:
        """Seconds at full size within which all is done, whatever happens: every job alone, through every server."""
        each_s = self.times.communication_s.sum(axis=0) + self.times.compute_s.sum(axis=0) * self.shape.layers
        return float(self.jobs.arrival_s[-1] + 2 * (self.jobs.work @ each_s).sum())

    def asked(self, theta: float) -> Asked:
        """In seconds of a run that is stretched by θ."""
        scaled = TokenTimes(theta * self.times.communication_s, theta * self.times.compute_s)
        return Asked(
            self.composition, scaled, self.usual, self.prompts, self.outputs, theta * self.jobs.arrival_s,
            self.jobs.draw, self.policy,
        )  # fmt: skip

    def plans(self, theta: float) -> list[ServerPlan]:
        """Of every server that hosts something."""
        placement, times, slots = self.composition.placement, self.times, self.composition.slots
        capacity = max(len(prompt) + output for prompt, output in zip(self.prompts, self.outputs, strict=True))
        return [
            ServerPlan(
                self.shape, self.seed, int(placement.first[j]), int(placement.blocks[j]), int(slots[j]), capacity,
                tuple((theta * times.communication_s[j]).tolist()), tuple((theta * times.compute_s[j]).tolist()),
                self.batched, self.fault if isinstance(self.fault, Swap) and self.fault.node == j else None,
            )
            for j in self.servers
        ]  # fmt: skip


def checked(
    composition: Composition, times: TokenTimes, jobs: JobList, shape: Shape, seed: int, policy: Dispatch | Callable,
    batched: bool, fault: Kill | Stop | Swap | None,
) -> Work:  # fmt: skip
    """Chains and jobs that fit together, or an `InputError`."""
    fleet, placement = running(composition).fleet, composition.placement
    if fleet.layers != shape.layers:
        remedy = f"give one of {fleet.layers} layers, one a block of the fleet"
        raise InputError(f"has {shape.layers} layers", remedy, field="shape")
    if jobs.work.shape[1] != 3 or times.compute_s.shape != (fleet.servers, 3):
        raise InputError("are not token times of these servers", "give jobs and times of tokens", field="times")
    lengths, outputs = (np.rint(jobs.work[:, feature]).astype(int) for feature in (1, 2))
    if lengths.min() < 1 or (longest := int((lengths + outputs).max()) + 1) > shape.longest:
        remedy = f"give each a token or more, and at most {shape.longest} with its output"
        raise InputError("has prompts of impossible length", remedy, field="jobs")
    servers = np.flatnonzero(placement.blocks > 0).tolist()
    if fault is not None and fault.node not in servers:
        raise InputError(f"names server {fault.node}", "name one that hosts blocks", field="fault")
    if isinstance(fault, Swap):
        first, count = int(placement.first[fault.node]), int(placement.blocks[fault.node])
        if not {fault.block, fault.other} <= set(range(first, first + count)):
            remedy = f"name two of blocks {first} to {first + count - 1}"
            raise InputError("swaps blocks that the server does not host", remedy, field="fault")
    random = np.random.default_rng([seed, longest])
    prompts = tuple(tuple(random.integers(0, shape.vocabulary, length).tolist()) for length in lengths)
    return Work(
        composition, times, jobs, shape, seed, policy, batched, fault, prompts, tuple((outputs + 1).tolist()),
        tuple(servers),
    )  # fmt: skip


def smallest_theta(work: Work, pool: Pool, stop: StopWanted) -> float:
    """The smallest θ at which no pass computes past its time, and none on a chain takes less than 20 ms.

    Errors: `UserError` where it would exceed 100.
    """
    together = int(work.composition.capacities.max()) if work.batched else 1
    longest = max(map(len, work.prompts))
    with pool.lease(1) as workers:
        workers[0].give(pass_seconds, work.shape, [(1, longest), (together, 1)])
        took_s = gather(workers, pool.beats, LIMIT_S, stop)[0]
    fixed_s, prompt_s, token_s = work.times.compute_s[list(work.servers)].T
    block_s = ((fixed_s + longest * prompt_s).min(), token_s.min())
    fewest = min(count for chain in work.composition.chains for count in chain.blocks)
    if not min(block_s) > 0:
        raise InputError("has blocks that take no time", "give each some", field="times")
    by_pass = max(ROOM * took / work.shape.layers / each for took, each in zip(took_s, block_s, strict=True))
    theta = max(1.0, by_pass, SHORTEST_STEP_S / (fewest * min(block_s)))
    if theta > LARGEST_THETA:
        raise UserError(
            f"A pass through {fewest} blocks takes {fewest * min(block_s):.3g} s at full size, and all blocks take "
            f"{max(took_s):.3g} s here: time would have to be stretched {theta:.0f} times, more than "
            f"{LARGEST_THETA:.0f}; give blocks more time."
        )
    return float(theta)
