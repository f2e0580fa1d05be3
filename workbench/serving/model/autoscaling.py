"""How many instances a model gets, and where they can be."""

import math
from typing import Literal

import numpy as np
from pydantic import field_validator, model_validator

from workbench.errors import UnknownName
from workbench.records import LARGEST, Asked, AtLeastOne, NotNegative, Positive, ZeroOrMore
from workbench.serving.policy.scalers import PARAMETERS, SCALERS, USUAL

BUSY = {"no": 0, "draining": 1, "busy": 2}
"""Which instances that compute prompts, and have work, an autoscaler of decoding ones takes: name -> number."""


class Autoscaler(Asked):
    """How many instances of one model are wanted, asked at every tick of the pool.

    Attributes:
        policy: one of `workbench.serving.policy.SCALERS`.
        parameters: its parameters by name, see `workbench.serving.policy.scalers.PARAMETERS`; some have usual values.
        least, most: bounds of what it may want.
        up_ticks, down_ticks: ticks in a row that must want more, or fewer, before anything is done.
        down_step: most instances drained at one tick.
        busy: of decoding instances: when more are wanted, which ones that compute prompts become such when they have
            done what they have: none (*no*), those that drain, or also *busy* ones that are up, in whose place others
            start.
        requeue: what waits in the queue of such an instance goes back to the router.
        stays: KV that is not on its way from such an instance stays there, and is decoded there; what waits in the
            queue goes back to the router then too.

    >>> Autoscaler(policy="queue", parameters={"waiting": 4}, most=8).numbers.tolist()
    [4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """

    policy: str = "none"
    parameters: dict[str, Positive] = {}
    least: ZeroOrMore = 0
    most: ZeroOrMore = LARGEST
    up_ticks: AtLeastOne = 1
    down_ticks: AtLeastOne = 1
    down_step: AtLeastOne = LARGEST
    busy: Literal["no", "draining", "busy"] = "no"
    requeue: bool = False
    stays: bool = False

    @field_validator("policy")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in SCALERS:
            raise UnknownName("autoscaling policy", name, SCALERS)
        return name

    @model_validator(mode="after")
    def _complete(self):
        names = PARAMETERS[SCALERS[self.policy]]
        for name in self.parameters:
            if name not in names:
                raise UnknownName(f"parameter of policy {self.policy!r}", name, names)
        for name in names:
            if name not in self.parameters and name not in USUAL:
                raise ValueError(f"parameters of policy {self.policy!r} lack {name!r}; give it")
        if self.least > self.most:
            raise ValueError(f"least is {self.least}, more than most, {self.most}; lower it")
        return self

    @property
    def numbers(self) -> np.ndarray:
        """float64[8], the parameters in order, then zeros."""
        found = np.zeros(8)
        for place, name in enumerate(PARAMETERS[SCALERS[self.policy]]):
            found[place] = self.parameters.get(name, USUAL.get(name))
        return found


class Pool(Asked):
    """Hosts with places, each for one instance of any model of the scenario at a time.

    Attributes:
        hosts, places: how many hosts, and places on each.
        accelerators: that make up a place.
        tick_s: seconds between two decisions of the autoscalers.
        scrape_s: how old the load is that they see, at least.
        ssd_bytes_per_s: of a host, shared by all that read there; None where nothing is read from SSD.
        ssd_each_bytes_per_s: that one instance gets of it at most, where it has a path of its own; None for all of it.
        stale_s: how late it is known that weights left the memory of a host for lack of room or for a newer version.
        detect_s: seconds that it costs to look for them there in that time, before they are read from SSD.
        cache_bytes: of a host's memory that hold weights; infinity for all that there are.
        cached: models that every host has in memory at first; on path *tiers* a host also has those of the instances
            that it has at first, whose weights came through its memory.
    """

    hosts: AtLeastOne
    places: AtLeastOne = 1
    accelerators: AtLeastOne = 1
    tick_s: Positive = 1.0
    scrape_s: NotNegative = 0.0
    ssd_bytes_per_s: Positive | None = None
    ssd_each_bytes_per_s: Positive | None = None
    stale_s: NotNegative = 0.0
    detect_s: NotNegative = 0.0
    cache_bytes: float = math.inf
    cached: tuple[str, ...] = ()

    @field_validator("cache_bytes")
    @classmethod
    def _a_size(cls, value: float) -> float:
        if not value >= 0:
            raise ValueError(f"is {value}; give 0 or more, or infinity")
        return value

    @property
    def scrape_ticks(self) -> int:
        """Whole ticks that cover the age of what autoscalers see.

        >>> Pool(hosts=1, tick_s=0.1, scrape_s=0.7).scrape_ticks, Pool(hosts=1, scrape_s=1.2).scrape_ticks
        (7, 2)
        """
        return math.ceil(round(self.scrape_s / self.tick_s, 9))
