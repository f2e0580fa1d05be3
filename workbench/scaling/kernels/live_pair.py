"""The slots of two instances that share batches while one of them still receives its layers."""

import numpy as np

from workbench.jit import kernel
from workbench.scaling.policy.live_pair import layers_now, next_on_source, next_on_target


@kernel
def live_pair(schedule, untouched, ready_s, arrival_s, layer_s, hand_s, most, finish_s, moved, slots):
    """When every batch is done, and where its layers ran.

    Steps of one layer are not interrupted. Of what happens at one instant, layers and batches come first, then the end
    of a step of the target, then that of the source; then the source chooses, then the target.

    Parameters (N batches, L layers):
        schedule, untouched: see `workbench.scaling.policy.live_pair`.
        ready_s: float64[L], when each layer is on the target, ascending; infinity for never.
        arrival_s: float64[N], ascending.
        layer_s: float64[N], seconds of one layer of each batch.
        hand_s: float64[N], seconds for which the source waits for the activation of a batch that it takes.
        most: int64[N], most layers of each on the target.
        finish_s: float64[N], out.
        moved: int64[N], out: layers of each that the target executed.
        slots: float64[R, 4], out: start, end, batch, instance (0 the source, 1 the target) of every step; R is at least
            N (L + 1).

    Returns:
        How many slots were filled.
    """
    count, layers = arrival_s.size, ready_s.size
    taken = np.zeros(count, np.bool_)
    moved[:] = 0
    now, used, done = 0.0, 0, 0
    target_end, source_end = np.inf, np.inf
    busy, current, goal, working = -1, -1, 0, -1
    arrived, ready = 0, 0
    while done < count:
        while arrived < count and arrival_s[arrived] <= now:
            arrived += 1
        while ready < layers and ready_s[ready] <= now:
            ready += 1
        if target_end <= now:
            moved[busy] += 1
            if moved[busy] == layers:
                taken[busy] = True
                finish_s[busy] = now
                done += 1
            busy, target_end = -1, np.inf
        if source_end <= now:
            finish_s[working] = now
            done += 1
            working, source_end = -1, np.inf
        if working < 0:
            # Under best effort a batch stays with the target while it can go on with it.
            goes_on = next_on_target(schedule, moved, most, taken, arrived, ready, current, goal)
            held = current if busy == current or goes_on == current else -1
            i = next_on_source(schedule, moved, most, taken, arrived, busy, held, untouched)
            if i >= 0:
                wait = hand_s[i] if moved[i] > 0 else 0.0
                taken[i], working = True, i
                source_end = now + (wait + layer_s[i] * (layers - moved[i]))
                slots[used, 0], slots[used, 1], slots[used, 2], slots[used, 3] = now, source_end, i, 0
                used += 1
        if busy < 0:
            i = next_on_target(schedule, moved, most, taken, arrived, ready, current, goal)
            if i >= 0:
                if i != current:
                    goal = layers_now(most[i], ready)
                busy = current = i
                target_end = now + layer_s[i]
                slots[used, 0], slots[used, 1], slots[used, 2], slots[used, 3] = now, target_end, i, 1
                used += 1
        soonest = min(target_end, source_end)
        if arrived < count:
            soonest = min(soonest, arrival_s[arrived])
        if ready < layers:
            soonest = min(soonest, ready_s[ready])
        if soonest == np.inf:
            break
        now = soonest
    for i in range(count):
        if not taken[i] or working == i:
            finish_s[i] = np.inf
    return used


@kernel
def best_plan(ready_s, layer_s, hand_s, arrival_s, plan, best):
    """The plan of layers on the target whose batches finish earliest on average, of all there are.

    Parameters:
        ready_s, layer_s, hand_s, arrival_s: as for `live_pair`.
        plan: int64[N], out: the first of the best plans in counting order.
        best: float64[N], out: its finish times.

    Returns:
        The sum of its finish times.
    """
    count, layers = arrival_s.size, ready_s.size
    trial = np.zeros(count, np.int64)
    finish, moved = np.empty(count), np.empty(count, np.int64)
    slots = np.empty((count * (layers + 1), 4))
    lowest = np.inf
    while True:
        live_pair(2, False, ready_s, arrival_s, layer_s, hand_s, trial, finish, moved, slots)
        total = finish.sum()
        if total < lowest:
            lowest = total
            plan[:], best[:] = trial, finish
        place = count - 1
        while place >= 0 and trial[place] == layers:
            trial[place] = 0
            place -= 1
        if place < 0:
            return lowest
        trial[place] += 1
