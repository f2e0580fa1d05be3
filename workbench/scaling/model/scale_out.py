"""A scale-out from k copies: when each new node is complete, and when it can serve in a pipeline before that."""

import functools
from functools import cached_property
from typing import Literal

import numpy as np

from workbench.records import Asked, AtLeastOne, NotNegative, Positive, Record
from workbench.scaling.policy import (
    Pipeline,
    executable,
    form_planned,
    form_searched,
    group_pipelines,
    halving_lengths,
)
from workbench.transfer.kernels.coverage import joint_copy
from workbench.transfer.model import arrival_steps
from workbench.transfer.policy import sub_groups

Variant = Literal["paper", "artifact"]
"""*paper*: chunks of neighbouring blocks, pipelines of Algorithm 2; *artifact*: strided chunks, pipelines of halved
lengths that a search finds."""

ORDERS = {"paper": "contiguous", "artifact": "strided"}


class ScaleOut(Asked):
    """One multicast of a model from nodes that have it to nodes that have nothing.

    Attributes:
        sources: nodes with a complete copy; of more than targets, the rest sends nothing.
        targets: nodes to be filled.
        blocks: execution blocks, the units in which a pipeline shares out a model.
        parts: transfer blocks of each.
        variant: see `Variant`.
        reorder: whether sub-groups rotate the blocks; without it all send them from first to last.
        weight_bytes: of the model.
        bytes_per_s, alpha_s: of every link, and its overhead for each transfer block.

    Source of defaults: λScale's artifact (8 execution and 16 transfer blocks).
    """

    sources: AtLeastOne
    targets: AtLeastOne
    blocks: AtLeastOne = 8
    parts: AtLeastOne = 2
    variant: Variant = "artifact"
    reorder: bool = True
    weight_bytes: Positive
    bytes_per_s: Positive
    alpha_s: NotNegative = 0.0

    @property
    def step_s(self) -> float:
        """Seconds of a transfer block: overhead + bytes over the link's rate."""
        return self.alpha_s + self.weight_bytes / (self.blocks * self.parts) / self.bytes_per_s


class Formed(Record):
    """What a scale-out does, in steps of its multicast and in seconds.

    Attributes:
        asked: the scale-out.
        sending: sources that send.
        ready_steps: int64[targets, blocks], steps after which a target can run a block.
        pipelines: in the order in which they form; their nodes are targets, numbered from 0.
    """

    asked: ScaleOut
    sending: int
    ready_steps: np.ndarray
    pipelines: tuple[Pipeline, ...]

    @cached_property
    def joint_steps(self) -> int:
        """Steps until the targets jointly hold all blocks."""
        return int(joint_copy(np.ascontiguousarray(self.ready_steps), 0))

    @cached_property
    def complete_steps(self) -> np.ndarray:
        """int64[targets], steps until each target has everything."""
        return self.ready_steps.max(axis=1)

    @cached_property
    def complete_s(self) -> np.ndarray:
        """float64[targets], seconds until each target has everything."""
        return self.complete_steps * self.asked.step_s

    @cached_property
    def pipeline_of(self) -> np.ndarray:
        """int64[targets], the pipeline that each target serves in, -1 for none."""
        found = np.full(self.asked.targets, -1)
        for number, pipeline in enumerate(self.pipelines):
            found[list(pipeline.nodes)] = number
        return found

    @cached_property
    def forms_s(self) -> np.ndarray:
        """float64[targets], seconds until the pipeline of each target forms, infinity for none."""
        times = np.array([pipeline.forms for pipeline in self.pipelines] + [np.inf])
        return times[self.pipeline_of] * self.asked.step_s


@functools.lru_cache(maxsize=4096)
def scale_out(asked: ScaleOut) -> Formed:
    """When do targets complete, which pipelines do they form, and when? Answers are kept: explorers ask again.

    Blocks travel by binomial pipelines inside sub-groups with one source each, in rotated orders (λScale §4.2); times
    are those of equal links that nobody else uses.

    Source: formation by Algorithm 2 (λScale §4.3) or as in the artifact, see `workbench.scaling.policy`.

    >>> found = scale_out(ScaleOut(sources=2, targets=10, weight_bytes=16.0, bytes_per_s=1.0))
    >>> [(len(one.nodes), one.forms) for one in found.pipelines], found.complete_s.max()
    ([(8, 9.0), (2, 10.0)], np.float64(18.0))
    """
    sending = min(asked.sources, asked.targets)
    nodes, order = sending + asked.targets, ORDERS[asked.variant] if asked.reorder else "naive"
    arrival = arrival_steps("k_way", nodes, asked.blocks, sources=sending, order=order, parts=asked.parts)
    ready = executable(arrival, asked.parts)
    if asked.variant == "paper":
        groups = [members[1:] for members in sub_groups(nodes, sending)]
        found = form_planned(ready, group_pipelines(groups))
    else:
        found = form_searched(ready, sending, halving_lengths(asked.targets, asked.blocks))
    pipelines = tuple(
        Pipeline(tuple(node - sending for node in one.nodes), one.forms, tuple(node - sending for node in one.runs))
        for one in found
    )
    ready = ready[sending:]
    ready.flags.writeable = False
    return Formed(asked=asked, sending=sending, ready_steps=ready, pipelines=pipelines)
