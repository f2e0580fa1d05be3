"""What an autoscaler sees of one group."""

from typing import NamedTuple

from workbench.serving.model.scaled import DRAINING, PIPED, UP
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.router import Line


class Signals(NamedTuple):
    """The load of one group at one tick.

    Attributes:
        waiting: requests at the router.
        outstanding: requests queued or running on rows, or on their way there.
        prompt_tokens: tokens still to be prefilled, at the router and on rows.
        blocks: KV blocks in use.
        arrived: requests that came since the tick before.
        stored: tokens that these blocks hold at most.
    """

    waiting: int = 0
    outstanding: int = 0
    prompt_tokens: int = 0
    blocks: int = 0
    arrived: int = 0
    stored: int = 0


def signals(group: int, line: Line, fleet: Fleet, arrived: int) -> Signals:
    """Look at a group now, and at the line of those that wait for it."""
    places = [row.instance for row in fleet.of(group, UP, DRAINING, PIPED)]
    queued = sum(request.need - request.stored for request in line if request.prefilling)
    return Signals(
        waiting=len(line),
        outstanding=sum(place.outstanding for place in places),
        prompt_tokens=queued + sum(place.prompt_tokens for place in places),
        blocks=sum(place.blocks.in_use for place in places),
        arrived=arrived,
        stored=sum(place.blocks.in_use * place.blocks.tokens_each for place in places),
    )
