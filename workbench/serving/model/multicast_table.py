"""When each of several new instances has its copy of the weights, by the closed forms of multicast on equal links."""

import numpy as np

from workbench.records import positive, whole
from workbench.serving.model.start_up import Multicast
from workbench.transfer.model import Hockney, completion


def multicast_table(plan: Multicast, total_bytes: float, sources: int, targets: int) -> np.ndarray:
    """Seconds until target i of k has all weights from s sources, float64[S, K, K] at [s-1, k-1, i]; 0 beyond i = k-1.

    Targets are dealt to the sources in turn, and each source serves its own by the schedule, the first one next to it.
    Links are equal and nobody else is on them. Sizes that have a plan take the times of that.

    Parameters:
        plan: schedule, link and blocks.
        total_bytes: of the weights.
        sources, targets: the most of each, S and K.

    Source: `workbench.transfer.model.completion`.

    >>> star = Multicast(schedule="chain", bytes_per_s=1e9, blocks=1)
    >>> multicast_table(star, 2e9, 2, 3)[:, 2].tolist()
    [[2.0, 4.0, 6.0], [2.0, 2.0, 4.0]]
    """
    sources, targets = whole(sources, "sources", 1), whole(targets, "targets", 1)
    cost = Hockney(alpha_s=plan.alpha_s, bytes_per_s=plan.bytes_per_s)
    size = positive(total_bytes, "total_bytes")
    done_s = [
        completion(plan.schedule, count + 1, plan.blocks, size, cost)["complete_s"].to_numpy()[1:]
        for count in range(1, targets + 1)
    ]
    table = np.zeros((sources, targets, targets))
    for s in range(1, sources + 1):
        for k in range(1, targets + 1):
            for first in range(min(s, k)):
                own = table[s - 1, k - 1, first:k:s]
                own[:] = done_s[own.size - 1]
    for one in plan.plans:
        if one.complete_s is not None and 1 <= one.sources <= sources and one.targets <= targets:
            table[one.sources - 1, one.targets - 1, : one.targets] = one.complete_s
    return table


def pipeline_tables(plan: Multicast, sources: int, targets: int) -> tuple[np.ndarray, np.ndarray]:
    """Seconds until target i of k serves as a member of a pipeline, and the number of that, as `multicast_table`.

    Infinity and -1 where there is none.
    """
    forms_s = np.full((sources, targets, targets), np.inf)
    pipeline = np.full((sources, targets, targets), -1)
    for one in plan.plans:
        if one.serves_early and 1 <= one.sources <= sources and one.targets <= targets:
            place = one.sources - 1, one.targets - 1, slice(one.targets)
            forms_s[place] = one.forms_s
            pipeline[place] = one.pipelines or 0
    return forms_s, pipeline


def local_tables(plan: Multicast | None, alone_s: float, targets: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """When row i of k that load at the same time, each from its host's memory, has all weights, when it serves as a
    member of a pipeline, and the number of that: [K, K] each, at [k-1, i].

    Parameters:
        plan: its plans without a source say; without one every row takes `alone_s` and there are no pipelines.
        alone_s: seconds of a load from memory.
        targets: the most, K.
    """
    done_s, forms_s = np.tril(np.full((targets, targets), alone_s)), np.full((targets, targets), np.inf)
    pipeline = np.full((targets, targets), -1)
    for one in plan.plans if plan else ():
        if one.sources == 0 and one.targets <= targets:
            place = one.targets - 1, slice(one.targets)
            done_s[place] = alone_s if one.complete_s is None else one.complete_s
            if one.serves_early:
                forms_s[place], pipeline[place] = one.forms_s, one.pipelines or 0
    return done_s, forms_s, pipeline
