"""Real runs as scale models: how far bytes shrink (σ) and time stretches (θ) so that this machine can tell the truth.

As a wind tunnel tests a small wing at the same dimensionless numbers: bytes / σ over links paced to B / σ keep the
seconds; where the machine is too slow or too unpunctual for the seconds themselves, all of them are stretched by θ.
"""

import math

import psutil

from workbench.errors import UserError
from workbench.executor.ceilings import Ceilings
from workbench.records import Asked, Positive, positive

SUM_SHARE = 0.4
"""Half of what the machine could carry before links miss their deadlines: more bytes would prove nothing more."""

OVERHEAD = 0.05
"""Lateness over the shortest step up to which the machine kept up."""

SHORTEST_STEP_S = 0.02
LARGEST_THETA = 100.0
ROOM = 1.5
"""How much longer a pass may take than it was measured to take alone: all processes share the machine's cores."""

TRIES = 3
"""Runs that are made at most until one keeps up, each with more time than the one before."""

MOST_LONGER = 2.0
"""How much longer the next try may take: one late moment of a busy machine is no reason to wait for minutes."""

MEMORY_SHARE = 0.25


class Scale(Asked):
    """Two factors, 1 and 1 for a run at full size.

    Attributes:
        sigma: full-size bytes over bytes of the run; rates shrink with them.
        theta: seconds of the run over full-size seconds.
    """

    sigma: Positive = 1.0
    theta: Positive = 1.0

    def bytes(self, full_bytes: float) -> int:
        """Bytes of the run that stand for so many full-size bytes."""
        return round(full_bytes / self.sigma)

    def bytes_per_s(self, full_bytes_per_s: float) -> float:
        """Rate of the run's links that stands for a full-size rate."""
        return full_bytes_per_s / self.sigma / self.theta

    def seconds(self, full_s: float) -> float:
        """Seconds of the run that stand for so many full-size seconds."""
        return full_s * self.theta


def choose_scale(
    step_s: float,
    message_bytes: float,
    bytes_per_s: float,
    ceilings: Ceilings,
    memory_bytes: float | None = None,
) -> Scale:
    """The least scaling at which this machine can run a multicast of full size punctually.

    θ is the smallest that makes a step at least 20 ms and at least 20 times the machine's mean lateness; σ the smallest
    that keeps (n - 1) B under 0.4 of what the machine moves at most, and n copies of the message in a quarter of the
    free memory. σ is rounded up to two digits.

    Parameters:
        step_s: the shortest step at full size, α + S / (m B).
        message_bytes: S, the whole message at full size.
        bytes_per_s: B, the fastest link at full size.
        ceilings: of this machine with as many processes as the run has.
        memory_bytes: memory that all copies may take; by default a quarter of what is free.

    Errors: `UserError` when θ would exceed 100, with the arithmetic; `InputError` for a number that is not above 0.

    Source: chosen from measurements on two cores: beyond 0.8 of the unpaced sum links miss their deadlines (we stay at
    half of that), and a mean lateness of 5 % of a step keeps a run within 10 % of its model.
    """
    positive(step_s, "step_s"), positive(message_bytes, "message_bytes"), positive(bytes_per_s, "bytes_per_s")
    shortest_s = max(SHORTEST_STEP_S, ceilings.lateness_s / OVERHEAD)
    theta = max(1.0, shortest_s / step_s)
    if theta > LARGEST_THETA:
        raise UserError(
            f"A step takes {step_s:.3g} s at full size and at least {shortest_s:.3g} s on this machine, so time would "
            f"have to be stretched {theta:.0f} times, more than {LARGEST_THETA:.0f}; use fewer blocks, a larger "
            "message or slower links."
        )
    room_bytes = (
        MEMORY_SHARE * psutil.virtual_memory().available
        if memory_bytes is None
        else positive(memory_bytes, "memory_bytes")
    )
    by_rate = (ceilings.processes - 1) * bytes_per_s / theta / (SUM_SHARE * ceilings.sum_bytes_per_s)
    by_memory = ceilings.processes * message_bytes / room_bytes
    return Scale(sigma=_rounded_up(max(1.0, by_rate, by_memory)), theta=theta)


def longer_by(overhead: float) -> float:
    """By what factor the next try stretches time more than a run that was late by so much.

    >>> round(longer_by(0.06), 6), longer_by(1.0)
    (1.44, 2.0)
    """
    return min(MOST_LONGER, 1.2 * overhead / OVERHEAD)


def times_show(waiting_share: float) -> str:
    """What the times of a run show: "paced" the plan, or "busy" the machine.

    Parameters:
        waiting_share: share of the wall time in which the processes used no processor; above half of it they mostly
            waited for a clock.

    >>> times_show(0.9), times_show(0.5)
    ('paced', 'busy')
    """
    return "paced" if waiting_share > 0.5 else "busy"


def _rounded_up(value: float) -> float:
    """The number with two digits that is not below the value."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit - 1e-9) * unit
