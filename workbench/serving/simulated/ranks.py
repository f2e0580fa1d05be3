"""Lines in which lower ranks stand first."""

from bisect import bisect_left, bisect_right
from collections.abc import MutableSequence
from operator import attrgetter

from workbench.serving.simulated.request import Request

RANK = attrgetter("rank")


def join_last(line: MutableSequence[Request], request: Request) -> None:
    """Behind the last one of the same or a lower rank."""
    if not line or line[-1].rank <= request.rank:
        line.append(request)
    else:
        line.insert(bisect_right(line, request.rank, key=RANK), request)


def join_first(line: MutableSequence[Request], request: Request) -> None:
    """Before the first one of the same or a higher rank."""
    line.insert(bisect_left(line, request.rank, key=RANK), request)
