"""What one multicast does: when each target has its copy, and when targets begin to serve in pipelines."""

import math
from collections.abc import Sequence

from pydantic import field_validator, model_validator

from workbench.records import Asked, AtLeastOne, NotNegative, ZeroOrMore


class MulticastPlan(Asked):
    """One size of a multicast, told target by target, in the order in which they are asked for.

    Attributes:
        sources, targets: how many there are; no source for targets that load at the same time, each from the memory
            of its own host.
        complete_s: seconds until each target has its copy; by the schedule of the `Multicast` when None.
        forms_s: seconds until each target serves as a member of a pipeline; infinity for one that never does; None
            where there are no pipelines. A pipeline that does not form before the copy is there is none.
        pipelines: the number of each target's pipeline; 0 for all when None.

    >>> MulticastPlan(sources=1, targets=2, forms_s=(1.0, 1.0), complete_s=(1.5, 2.0)).pipelines is None
    True
    """

    sources: ZeroOrMore
    targets: AtLeastOne
    complete_s: tuple[NotNegative, ...] | None = None
    forms_s: tuple[float, ...] | None = None
    pipelines: tuple[int, ...] | None = None

    @field_validator("forms_s")
    @classmethod
    def _times(cls, values: Sequence[float] | None):
        for value in values or ():
            if not value >= 0:
                raise ValueError(f"holds {value}; give 0 or more, or infinity")
        return values

    @field_validator("pipelines")
    @classmethod
    def _numbers(cls, values: Sequence[int] | None):
        for value in values or ():
            if not 0 <= value < 2**31:
                raise ValueError(f"holds {value}; number pipelines from 0")
        return values

    @model_validator(mode="after")
    def _one_each(self):
        for name in ("complete_s", "forms_s", "pipelines"):
            given = getattr(self, name)
            if given is not None and len(given) != self.targets:
                raise ValueError(f"{name} has {len(given)} numbers for {self.targets} targets; give one each")
        if self.pipelines is not None and self.forms_s is None:
            raise ValueError("pipelines have no forms_s; give the times at which they form")
        return self

    @property
    def serves_early(self) -> bool:
        """Whether some target serves in a pipeline."""
        return self.forms_s is not None and any(map(math.isfinite, self.forms_s))
