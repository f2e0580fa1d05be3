"""Models that stay on an instance: one each, or as many as MuxServe's memory rule lets in."""

import numpy as np

from workbench.pooling.model.facts import facts


def static_places(system: str, weight_bytes: np.ndarray, instances: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each model stays, and the weights beside its own there.

    Parameters:
        system: "dedicated" or "muxserve".
        weight_bytes: float64[M].
        instances: how many there are.

    Returns:
        int64[M], the instance of each model, -1 where it found no room; float64[M], bytes of the others on it.
    """
    count = weight_bytes.size
    place = np.full(count, -1)
    if system == "dedicated":
        place[: min(count, instances)] = np.arange(min(count, instances))
    else:
        place = muxserve_places(weight_bytes, instances)
    there = np.bincount(place[place >= 0], weights=weight_bytes[place >= 0], minlength=instances)
    return place, np.where(place >= 0, there[place] - weight_bytes, 0.0)


def muxserve_places(weight_bytes: np.ndarray, instances: int) -> np.ndarray:
    """The memory rule of MuxServe's optimiser as Aegaeon's artifact runs it: which GPU has room, in order.

    A model is let in where its weights are within what is left of a GPU's budget, and takes them and 7.6 GB more.

    Parameters:
        weight_bytes: float64[M], of each model, in the order in which they are placed.
        instances: GPUs.

    Returns:
        int64[M], the GPU of each model; -1 where none has room.

    >>> muxserve_places(np.array([14e9, 14e9, 14e9, 26e9]), 2).tolist()
    [0, 0, 1, -1]

    Source: Aegaeon's artifact, MuxServe/muxserve/muxsched/placement.py; one mesh a GPU, the first with room.
    """
    rule = facts().muxserve
    left = np.full(instances, float(rule.budget_bytes))
    place = np.full(weight_bytes.size, -1)
    for model, size in enumerate(weight_bytes.tolist()):
        room = np.flatnonzero(left >= size)
        if room.size:
            place[model] = room[0]
            left[room[0]] -= size + float(rule.added_bytes)
    return place
