"""How long it takes to bring weights to a GPU: a number of seconds, a rate, or a plan of transfers between hosts."""

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from workbench.records import Asked, AtLeastOne, Positive
from workbench.transfer.model import Hockney, arrival_steps


class InSeconds(Asked):
    """A switch that takes the same `seconds` for every model."""

    kind: Literal["seconds"] = "seconds"
    seconds: Positive

    def of(self, weight_bytes: float) -> float:
        """Seconds for so many bytes."""
        return self.seconds


class ByRate(Asked):
    """Bytes over a rate: from host memory, say.

    >>> ByRate(bytes_per_s=32e9).of(26e9)
    0.8125
    """

    kind: Literal["rate"] = "rate"
    bytes_per_s: Positive

    def of(self, weight_bytes: float) -> float:
        """Seconds for so many bytes."""
        return weight_bytes / self.bytes_per_s


class ByPlan(Asked):
    """Weights that no host of the pool holds come by a multicast to all of them, and go on to the GPU block by block.

    Attributes:
        schedule: name of a transfer schedule, as in `workbench.transfer.policy.make_schedule`.
        hosts: that receive them; one more sends.
        blocks: of a model.
        cost: of a message between hosts.
        bytes_per_s: from a host's memory to a GPU.

    >>> plan = ByPlan(schedule="chain", hosts=1, blocks=4, cost=Hockney(bytes_per_s=1e9), bytes_per_s=1e9)
    >>> plan.of(4e9)  # four blocks over the network, and the last one on to the GPU
    5.0
    """

    kind: Literal["plan"] = "plan"
    schedule: str = "binomial_pipeline"
    hosts: AtLeastOne = 7
    blocks: AtLeastOne = 16
    cost: Hockney
    bytes_per_s: Positive

    def of(self, weight_bytes: float) -> float:
        """Seconds until the last host's GPU has them."""
        steps = arrival_steps(self.schedule, self.hosts + 1, self.blocks)[1:]
        size = weight_bytes / steps.shape[1]
        landed_s = np.sort(steps, axis=1) * self.cost.travel_s(size)
        done_s = np.zeros(self.hosts)
        for block in range(steps.shape[1]):
            done_s = np.maximum(done_s, landed_s[:, block]) + size / self.bytes_per_s
        return float(done_s.max())


SwitchTime = Annotated[InSeconds | ByRate | ByPlan, Field(discriminator="kind")]
