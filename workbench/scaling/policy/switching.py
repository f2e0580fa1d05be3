"""When a node leaves its pipeline to serve alone, and what becomes of the requests on their way."""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from workbench.errors import InputError, UnknownName
from workbench.records import not_negative

Switch = Literal["each", "whole"]
"""*each*: a node serves alone as soon as it has all blocks (λScale §4.3); *whole*: all nodes of a scaling operation do
so when the last of them is complete (the artifact)."""


def leave_times(complete: np.ndarray, switch: Switch = "each") -> np.ndarray:
    """When each node of an operation serves alone, in the unit of its completion.

    >>> leave_times(np.array([3.0, 5.0, 4.0]), "whole").tolist()
    [5.0, 5.0, 5.0]
    """
    if switch not in get_args(Switch):
        raise UnknownName("way to switch", switch, get_args(Switch))
    complete = np.asarray(complete)
    if not (np.isfinite(complete) & (complete >= 0)).all():
        raise InputError("holds a node that never completes", "give finite times of 0 or more", field="complete")
    return complete.copy() if switch == "each" else np.full_like(complete, complete.max(initial=0))


def keeps_kv_by(recompute_s: float, move_s: float) -> Literal["recompute", "move"]:
    """How a request's KV reaches the node that it goes on with: the faster way, and recomputing of equals.

    λScale always recomputes; moving is the alternative that it does not take.
    """
    faster = not_negative(move_s, "move_s") < not_negative(recompute_s, "recompute_s")
    return "move" if faster else "recompute"


def next_place(idle_replicas: Sequence[int], in_flight: Sequence[int], limits: Sequence[int]) -> tuple[str, int] | None:
    """Where the request at the head of the line goes; None if it waits.

    Replicas that are complete and idle come first, then the first pipeline with fewer requests than nodes; a request
    stays with its pipeline for all its tokens. Resumed requests stand before new ones in the line (λScale's artifact).

    Parameters:
        idle_replicas: complete nodes without a request.
        in_flight, limits: requests in each pipeline, and the most it takes (`Pipeline.in_flight`).

    >>> next_place([], [2, 1], [2, 2]), next_place([7], [0], [2]), next_place([], [2], [2])
    (('pipeline', 1), ('replica', 7), None)
    """
    if len(in_flight) != len(limits):
        raise InputError(f"has {len(limits)} numbers for {len(in_flight)} pipelines", "give one each", field="limits")
    if len(idle_replicas):
        return "replica", idle_replicas[0]
    for number, (inside, most) in enumerate(zip(in_flight, limits, strict=True)):
        if inside < most:
            return "pipeline", number
    return None
