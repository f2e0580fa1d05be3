"""What greedy placement is compared with: servers taken in random order."""

import numpy as np

from workbench.chains.model.composing import reserve
from workbench.chains.model.fleet import Fleet
from workbench.chains.policy.placement import grouped_in_order
from workbench.queueing.checking import not_negative
from workbench.records import of_type, takes_records, whole


@takes_records
def random_orders(fleet: Fleet, reserved: int, needed_per_s: float, count: int, rng: np.random.Generator) -> np.ndarray:
    """How many chains reach a rate when servers join in random order, each chain closed as soon as it hosts the model?

    Parameters:
        fleet: the servers.
        reserved: c, jobs that each chain holds.
        needed_per_s: rate to be reached by c jobs on each chain.
        count: random orders.
        rng: draws them.

    Returns:
        float64[count], chains of each order; NaN where all of its chains together do not reach the rate.
    """
    blocks, needed = reserve(fleet, reserved), not_negative(needed_per_s, "needed_per_s") / reserved
    of_type(rng, np.random.Generator, "rng")
    found = np.array(
        [
            grouped_in_order(
                rng.permutation(fleet.servers), blocks, fleet.communication_s, fleet.compute_s, fleet.layers, needed
            )
            for _ in range(whole(count, "count", 1))
        ],
        dtype=float,
    )
    return np.where(found > 0, found, np.nan)
