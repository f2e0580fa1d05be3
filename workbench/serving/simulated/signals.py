"""What an autoscaler sees of one model."""

from typing import NamedTuple

from workbench.serving.model.scaled import DRAINING, PIPED, UP
from workbench.serving.simulated.fleet import Fleet
from workbench.serving.simulated.router import Router


class Signals(NamedTuple):
    """The load of one model at one tick.

    Attributes:
        waiting: requests at the router.
        outstanding: requests queued or running on rows.
        prompt_tokens: tokens still to be prefilled, at the router and on rows.
        blocks: KV blocks in use.
        arrived: requests that came since the tick before.
    """

    waiting: int = 0
    outstanding: int = 0
    prompt_tokens: int = 0
    blocks: int = 0
    arrived: int = 0


def signals(model: int, router: Router, fleet: Fleet, arrived: int) -> Signals:
    """Look at a model now."""
    places = [row.instance for row in fleet.of(model, UP, DRAINING, PIPED)]
    line = router.lines[model]
    here = [request for place in places for request in (*place.running, *place.queue)]
    return Signals(
        waiting=len(line),
        outstanding=len(here),
        prompt_tokens=sum(request.need - request.stored for request in (*line, *here) if request.prefilling),
        blocks=sum(place.blocks.in_use for place in places),
        arrived=arrived,
    )
