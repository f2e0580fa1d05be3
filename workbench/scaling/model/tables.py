"""Scale-outs as the serving engine takes them: one plan for every number of sources and targets that may occur."""

import functools

import numpy as np

from workbench.records import whole
from workbench.scaling.model.scale_out import ScaleOut, scale_out
from workbench.serving.model.multicast_plan import MulticastPlan

MOST = 64
"""Sources or targets of one multicast that the engine plans for."""


def multicast_plans(asked: ScaleOut, sources: int, targets: int) -> tuple[MulticastPlan, ...]:
    """When targets complete and pipelines form, for 1 to so many sources and targets.

    Parameters:
        asked: blocks, link and variant; its own numbers of sources and targets play no part.
        sources, targets: the most of each.

    >>> link = {"weight_bytes": 16.0, "bytes_per_s": 1.0}
    >>> plans = multicast_plans(ScaleOut(sources=1, targets=1, blocks=4, parts=1, **link), 2, 2)
    >>> [(plan.sources, plan.targets, plan.forms_s) for plan in plans][-1]
    (2, 2, (8.0, 8.0))
    """
    sources, targets = whole(sources, "sources", 1, MOST), whole(targets, "targets", 1, MOST)
    shape = asked.model_copy(update={"sources": 1, "targets": 1})
    return tuple(_plan(shape, s, t) for s in range(1, sources + 1) for t in range(1, targets + 1))


@functools.lru_cache(maxsize=8192)
def _plan(shape: ScaleOut, sources: int, targets: int) -> MulticastPlan:
    """One entry; kept, since every run of an experiment asks for the same ones."""
    if sources > targets:
        return _plan(shape, targets, targets).model_copy(update={"sources": sources})
    out = scale_out(shape.model_copy(update={"sources": sources, "targets": targets}))
    alone = len(out.pipelines)
    numbers = np.where(out.pipeline_of < 0, alone, out.pipeline_of)
    return MulticastPlan(
        sources=sources,
        targets=targets,
        complete_s=tuple(out.complete_s.tolist()),
        forms_s=tuple(out.forms_s.tolist()),
        pipelines=tuple(numbers.tolist()),
    )
