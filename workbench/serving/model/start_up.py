"""What it takes until a new instance serves: its engine, its weights, its first warm-up."""

import math
from typing import Literal

from pydantic import field_validator, model_validator

from workbench.errors import UnknownName
from workbench.records import LARGEST, Asked, AtLeastOne, NotNegative, Positive, Status, ZeroOrMore
from workbench.serving.model.multicast_plan import MulticastPlan
from workbench.serving.model.step_forms import StepForm
from workbench.serving.policy.scalers import SOURCES


class Part(Asked):
    """Seconds of one part of a start, and whose number that is."""

    seconds: NotNegative = 0.0
    source: str = "given"
    status: Status = "user"


class Multicast(Asked):
    """How weights travel between instances: every source serves targets of its own by one schedule.

    Attributes:
        schedule: see `workbench.transfer.policy`; *ring_broadcast* is NCCL's.
        bytes_per_s: of an instance's network cards together.
        alpha_s: overhead of each block.
        blocks: into how many the weights are cut.
        plans: sizes of a multicast whose times are known, in place of the schedule's; with the pipelines that serve
            while it runs. Sizes without a plan have none.
        piped_step: how long a step takes while an instance is a member of a pipeline: it runs whole batches, as its
            share of what the members do by turns. Needed for pipelines.
        switch: a member serves alone when it has its own copy (*each*), or when all targets have theirs (*whole*).
    """

    schedule: Literal["chain", "binomial_pipeline", "faasnet_tree", "ring_broadcast"]
    bytes_per_s: Positive
    alpha_s: NotNegative = 0.0
    blocks: AtLeastOne = 64
    plans: tuple[MulticastPlan, ...] = ()
    piped_step: StepForm | None = None
    switch: Literal["each", "whole"] = "each"

    @model_validator(mode="after")
    def _planned_once(self):
        sizes = [(plan.sources, plan.targets) for plan in self.plans]
        for size in sizes:
            if sizes.count(size) > 1:
                raise ValueError(f"plans has two for {size[0]} sources and {size[1]} targets; leave one out")
        if self.piped_step is None and any(plan.serves_early for plan in self.plans):
            raise ValueError("plans have pipelines but there is no piped_step; give the step time of a member")
        return self


class Weights(Asked):
    """Where the weights of a new instance come from, and how long they are kept.

    Attributes:
        path: one of `workbench.serving.policy.SOURCES`.
        bytes: of all weights; needed where they are read or sent.
        fixed_s: seconds of loading on path *fixed*.
        dram_bytes_per_s: from the host's memory to all accelerators of an instance together.
        multicast: how instances send them to each other.
        memory_first: on paths *multicast* and *chains*, instances whose hosts have the weights in memory load them from
            there, in an operation of their own; otherwise they are sent them like all others while some instance has
            them.
        hosts_send: on these paths, hosts send what they have in memory where no instance has the weights.
        chains: on path *chains*, most that go at a time; 0 sends each instance its weights by itself.
        lag_s: on that path, by which each further instance of a chain has its weights later.
        decode_first: on that path, instances that compute prompts send only where no others can, since KV goes their
            way out.
        near_bytes_per_s: on that path, of a fast network inside a host: instances there get weights from each other,
            and the parts of them that each receives; None where there is none.
        live: on that path, the last instances of chains run layers that they have for instances that have prompts to
            compute, while the rest is on its way.
        only_worth: they do so only where several batches wait and it pays, and not whenever a step gets shorter.
        promise_s: seconds of TTFT; they do so only where it pays and prompts that waited for the load would besides be
            later than that. None for no such condition.
        judged: which prompts those are: one that comes with the load (*new*), or the oldest one that is there.
        layers: of the model, by which that is told; needed for it.
        activation_s: seconds of handing over the activation of one token.
        reroute: on that path, chains begin again from another source when the way out of theirs fails.
        pinned: hosts, counted from the first, whose memory keeps the weights whatever happens; with path *chains*
            counted from the host of the model's number, round about, so that copies of models are spread.
        ttl_s: how long they stay in a host's memory unused; infinity until there is no room.
        keep_s: how long an idle instance is kept with its weights; infinity until its place is needed.
        source, status: whose numbers these are.
    """

    path: str = "ideal"
    bytes: Positive | None = None
    fixed_s: NotNegative = 0.0
    dram_bytes_per_s: Positive | None = None
    multicast: Multicast | None = None
    memory_first: bool = False
    hosts_send: bool = False
    chains: ZeroOrMore = LARGEST
    lag_s: NotNegative = 0.0
    decode_first: bool = True
    near_bytes_per_s: Positive | None = None
    live: bool = False
    only_worth: bool = False
    layers: AtLeastOne | None = None
    activation_s: NotNegative = 0.0
    promise_s: NotNegative | None = None
    judged: Literal["new", "oldest"] = "new"
    reroute: bool = False
    pinned: ZeroOrMore = 0
    ttl_s: float = math.inf
    keep_s: float = 0.0
    source: str = "given"
    status: Status = "user"

    @field_validator("path")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in SOURCES:
            raise UnknownName("source of weights", name, SOURCES)
        return name

    @field_validator("ttl_s", "keep_s")
    @classmethod
    def _a_time(cls, value: float) -> float:
        if not value >= 0:
            raise ValueError(f"is {value}; give 0 or more, or infinity")
        return value

    @model_validator(mode="after")
    def _complete(self):
        needed = {
            "tiers": ("bytes", "dram_bytes_per_s"),
            "all-cached": ("bytes", "dram_bytes_per_s"),
            "multicast": ("bytes", "dram_bytes_per_s", "multicast"),
            "chains": ("bytes", "dram_bytes_per_s"),
        }
        for name in needed.get(self.path, ()):
            if getattr(self, name) is None:
                raise ValueError(f"{name} is missing, which path {self.path!r} needs; give it")
        for name in ("memory_first", "hosts_send"):
            if getattr(self, name) and self.path not in ("multicast", "chains"):
                raise ValueError(f"{name} is set, which path {self.path!r} does not know; leave it out")
        if self.live and (self.path != "chains" or self.layers is None):
            missing = (
                f"path is {self.path!r}; choose 'chains'" if self.path != "chains" else "layers is missing; give it"
            )
            raise ValueError(f"live is set, but {missing}")
        return self

    @property
    def reads_ssd(self) -> bool:
        """Whether they may have to be read from SSD."""
        return self.path in ("tiers", "multicast", "chains")


class StartUp(Asked):
    """The plan by which an instance starts: engine, then weights, then warm-up, nothing at the same time.

    Attributes:
        engine: process, runtime and communication set up.
        weights: see `Weights`.
        warm_up: graphs captured, first batches.

    >>> StartUp(engine=Part(seconds=2.0, source="measured here"), warm_up=Part(seconds=0.5)).control_s
    2.5
    """

    engine: Part = Part()
    weights: Weights = Weights()
    warm_up: Part = Part()

    @property
    def control_s(self) -> float:
        """All but the weights."""
        return self.engine.seconds + self.warm_up.seconds
