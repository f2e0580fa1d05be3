"""c servers, first come first served: one SimPy process a customer and a resource they queue for."""

import numpy as np
import simpy

from workbench.queueing.checking import server_count
from workbench.queueing.path import Customers, Path, checked
from workbench.queueing.simulated.clock import Clock

_ENDS, _ARRIVES = 2, 3


def simulate_first_come(customers: Customers, servers: int = 1) -> Path:
    """The path of `first_come_path`, by simulation."""
    arrival, service = checked(customers)
    start = np.full(arrival.size, np.nan)
    clock = Clock()
    desk = simpy.Resource(clock, server_count(servers))

    def visit(customer: int):
        with desk.request() as turn:
            yield turn
            start[customer] = clock.now
            yield clock.at(clock.now + service[customer], _ENDS)

    clock.process(clock.arrivals(arrival, _ARRIVES, lambda customer: clock.process(visit(customer))))
    clock.run()
    return Path(arrival, start, start + service)
