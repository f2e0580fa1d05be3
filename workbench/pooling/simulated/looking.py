"""Looking ahead: would anybody miss a promise that is still kept, if one more request were let in and nobody after it?

The compiled loop copies its state and runs the copy on. Processes cannot be copied, so here the whole run is made again
from its first arrival, with whoever was let in or turned away so far, and with the output lengths that are believed in
for those that still go. A run is determined by its arrivals, so that up to this instant it is the same one.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from workbench.pooling.model.lowered import DONE
from workbench.pooling.policy.names import EVERYBODY

if TYPE_CHECKING:
    from workbench.pooling.simulated.world import World


def keeps_all(world: "World", number: int) -> bool:
    """Whether all promises that are kept now would still be, by the lengths that admission control believes in.

    Parameters:
        world: the pool, at the arrival of the request. number: of the request, whom nothing else turns away.
    """
    rules, asked, count = world.rules, world.requests_in, number + 1
    known = world.requests[:count]
    thought = [max(len(r.token_s) + 1, math.ceil(rules.margin * int(asked.believed[r.number]))) for r in known]
    output = [r.output if r.status == DONE else most for r, most in zip(known, thought, strict=True)]
    again = asked._replace(**{name: getattr(asked, name)[:count] for name in asked._fields})
    ahead = type(world)(
        world.lowered._replace(
            requests=again._replace(output=np.array(output, np.int64)), rules=rules._replace(admission=EVERYBODY)
        ),
        let_in=[*world.let_in, True],
    )
    ahead.run()
    return not any(_breaks(r.arrival_s, r.token_s, rules, world.clock.now) for r in ahead.requests)


def _breaks(arrival_s: float, token_s: list[float], rules, now: float) -> bool:
    """Whether the first token of a request that comes late comes from now on."""
    for place, time_s in enumerate(token_s):
        if time_s > arrival_s + rules.promise_ttft_s + place * rules.promise_tbt_s:
            return time_s >= now
    return False
