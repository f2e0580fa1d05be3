"""Round robin over queues: which queue is next, and how many are served on one visit."""

from typing import Literal

from workbench.errors import UnknownName
from workbench.jit import kernel

Discipline = Literal["exhaustive", "gated", "one-limited"]
DISCIPLINES: dict[Discipline, int] = {"exhaustive": 0, "gated": 1, "one-limited": 2}
"""When the server leaves a queue, with the number that kernels know it by."""

_NO_LIMIT = 2**62


def check_discipline(name: str) -> int:
    """The number of a discipline, or `UnknownName`."""
    if name not in DISCIPLINES:
        raise UnknownName("polling discipline", str(name), DISCIPLINES)
    return DISCIPLINES[name]


@kernel
def allowance(discipline, waiting):
    """How many customers may be served on a visit that finds `waiting` of them: no limit, those found, or one."""
    if discipline == 0:
        return _NO_LIMIT
    if discipline == 1:
        return waiting
    return 1


@kernel
def next_queue(queue, queues):
    """The queue after this one, in a circle."""
    return queue + 1 if queue + 1 < queues else 0
