"""One server that walks round several queues: a SimPy process that serves, walks and looks again."""

from collections import deque

import numpy as np

from workbench.queueing.model.paths import checked_rotation
from workbench.queueing.path import Customers, Path, checked
from workbench.queueing.policy import Discipline, allowance, check_discipline, idle_walk, next_queue
from workbench.queueing.simulated.clock import Clock

_ARRIVES, _SERVER = 2, 3


def simulate_rotation(customers: Customers, queue, switch_s, discipline: Discipline = "exhaustive") -> Path:
    """The path of `rotation_path`, by simulation."""
    arrival, service = checked(customers)
    queues, walks = checked_rotation(queue, switch_s, arrival.size)
    rule = check_discipline(discipline)
    start, finish = np.full(arrival.size, np.nan), np.full(arrival.size, np.nan)
    lines = [deque() for _ in range(int(queues.max()) + 1)]
    clock = Clock()
    someone = clock.event()

    def meet(customer: int) -> None:
        lines[queues[customer]].append(customer)
        if not someone.triggered:
            someone.succeed()

    def serve():
        nonlocal someone
        here, walk, idle_visits, left = 0, 0, 0, arrival.size
        yield clock.at(0.0, _SERVER)
        while left:
            line = lines[here]
            allowed = allowance(rule, len(line))
            idle_visits = 0 if line else idle_visits + 1
            while allowed and line:
                customer = line.popleft()
                start[customer] = clock.now
                finish[customer] = clock.now + service[customer]
                yield clock.at(finish[customer], _SERVER)
                allowed -= 1
                left -= 1
            yield clock.at(clock.now + walks[walk], _SERVER)
            walk = walk + 1 if walk + 1 < walks.size else 0
            here = next_queue(here, len(lines))
            if idle_visits >= len(lines) and left:
                idle_visits = 0
                if not any(lines):
                    since_s, someone = clock.now, clock.event()
                    yield someone
                    now_s, here, walk = idle_walk(since_s, here, walk, clock.now, len(lines), walks)
                    yield clock.at(now_s, _SERVER)  # after all who arrive at that instant

    clock.process(clock.arrivals(arrival, _ARRIVES, meet))
    clock.process(serve())
    clock.run()
    return Path(arrival, start, finish, queues)
