"""Scale-outs as the serving engine takes them: one plan for every number of sources and targets that may occur."""

import functools

import numpy as np

from workbench.records import whole
from workbench.scaling.model.scale_out import ScaleOut, scale_out
from workbench.scaling.model.warm import warm_start
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


def warm_plans(block_bytes: tuple[float, ...], bytes_per_s: float, nodes: int) -> tuple[MulticastPlan, ...]:
    """When nodes that load from their own hosts complete and form pipelines, for 1 to so many at the same time.

    Parameters:
        block_bytes: of each execution block.
        bytes_per_s: from a host's memory to the accelerators of an instance.
        nodes: the most.

    >>> [plan.forms_s for plan in warm_plans((1.0, 1.0), 1.0, 2)]
    [(2.0,), (1.0, 1.0)]
    """
    return tuple(
        _warm(tuple(block_bytes), bytes_per_s, count) for count in range(1, whole(nodes, "nodes", 1, MOST) + 1)
    )


@functools.lru_cache(maxsize=1024)
def _warm(block_bytes: tuple[float, ...], bytes_per_s: float, nodes: int) -> MulticastPlan:
    found = warm_start(nodes, block_bytes, bytes_per_s)
    forms_s, numbers = np.full(nodes, np.inf), np.full(nodes, len(found.pipelines))
    for number, pipeline in enumerate(found.pipelines):
        forms_s[list(pipeline.nodes)], numbers[list(pipeline.nodes)] = pipeline.forms, number
    return MulticastPlan(
        sources=0,
        targets=nodes,
        complete_s=tuple(found.complete_s.tolist()),
        forms_s=tuple(forms_s.tolist()),
        pipelines=tuple(numbers.tolist()),
    )


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
