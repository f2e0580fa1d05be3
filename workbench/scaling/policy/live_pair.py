"""Who executes which layer while a new instance still receives its weights: two instances, one queue of batches.

The *target* is the new instance: its layers become ready one after the other. The *source* is the old one: it holds all
of them. A batch runs its first layers on the target and the rest on the source; batches come first, first served.

Source: BlitzScale (OSDI'25) §5.2, Fig 15 and 16; where the paper leaves a rule open, notes on BlitzScale, §2.5.
"""

from workbench.jit import lean_kernel

ALONE, BEST_EFFORT, PLANNED, ZIGZAG = range(4)

SCHEDULES = {"alone": ALONE, "best-effort": BEST_EFFORT, "planned": PLANNED, "zigzag": ZIGZAG}
"""Name -> number. *alone*: the source runs everything; *best-effort*: the target runs the layers that are there when it
begins a batch, up to half of all, and hands it over; *planned*: a given number of layers of each batch; *zigzag*: the
target runs one layer of the earliest batch that has a ready one, and a batch waits there until the source is idle."""


@lean_kernel
def next_on_target(schedule, executed, most, taken, arrived, ready, current, goal):
    """The batch whose next layer the target executes now, or -1.

    Parameters:
        schedule: number of the rule.
        executed: int64[N], layers of each batch that the target has done.
        most: int64[N], layers of each that it may do.
        taken: bool[N], batches that the source has taken (or that are done).
        arrived: batches that are there: 0 to arrived - 1.
        ready: layers that the target has received.
        current: the batch that it executed last, -1 for none.
        goal: how many layers of that one it was to execute when it began, see `layers_now`.
    """
    if schedule == ALONE:
        return -1
    if schedule == BEST_EFFORT:
        if current >= 0 and not taken[current] and executed[current] < goal:
            return current
        for i in range(current + 1, arrived):
            if not taken[i]:
                return i if executed[i] < min(most[i], ready) else -1
        return -1
    for i in range(arrived):
        if not taken[i] and executed[i] < min(most[i], ready):
            return i
    return -1


@lean_kernel
def layers_now(most, ready):
    """How many layers of a batch that it begins the target executes under best effort."""
    return min(most, ready)


@lean_kernel
def next_on_source(schedule, executed, most, taken, arrived, busy, current, untouched):
    """The batch that the idle source takes now with all its remaining layers, or -1.

    Parameters:
        schedule, executed, most, taken, arrived: as for `next_on_target`.
        busy: the batch of which the target executes a layer, -1 for none.
        current: the batch that the target executes or goes on with, -1 for none; best effort leaves it there.
        untouched: whether it may take a batch that the target has not begun, when there is no other.
    """
    spare = -1
    for i in range(arrived):
        if taken[i] or i == busy:
            continue
        if schedule == ALONE:
            return i
        if schedule == PLANNED:
            return i if executed[i] == most[i] else -1
        if executed[i] > 0 or most[i] == 0:
            if schedule == ZIGZAG or i != current:
                return i
            return -1
        if spare < 0:
            spare = i
    return spare if untouched else -1
