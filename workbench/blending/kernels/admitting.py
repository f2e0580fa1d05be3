"""Who is admitted, and what admission costs the pool."""

from workbench.blending.kernels.flights import ALL, insert_row, peak, peak_with
from workbench.blending.kernels.layout import BY_CAP, FEEDBACK, LEFT, RIGHT, SINGLE
from workbench.blending.kernels.prefixes import IDLE, OLDEST, SHARED, drop_oldest, missing_tokens, unused_tokens, use
from workbench.blending.kernels.state import (
    ADMITTED,
    BUDGET,
    COMPUTED,
    CREDIT,
    DECODING,
    DUE,
    FRESH,
    HEAVY,
    MEMORY,
    NEXT,
    PARTIAL,
    PLACE,
    PRIVATE,
    SIDE,
    SINCE_STEP,
    SWAPPED,
    TODO,
    UNIT,
)
from workbench.blending.policy.balance import in_flight, lasting_split, memory_split, prefill_tokens_per_step
from workbench.jit import inner_kernel


@inner_kernel
def split_pool(order, rules, state):
    """Set shares and budgets of both ends anew when an end has entered another unit."""
    number, real = state.number, state.real
    left, right = order.unit[number[NEXT + LEFT]], order.unit[number[NEXT + RIGHT]]
    if left == number[UNIT + LEFT] and right == number[UNIT + RIGHT]:
        return
    number[UNIT + LEFT], number[UNIT + RIGHT] = left, right
    if rules.scan == FEEDBACK:
        share = lasting_split(float(rules.capacity), rules.heavy_share, order.density[left], rules.density)
        number[MEMORY + RIGHT] = int(share)
        return
    shares = memory_split(float(rules.capacity), order.density[left], order.density[right], rules.density)
    for side in range(2):
        unit = number[UNIT + side]
        share = shares[0] if side == LEFT else shares[1]
        number[MEMORY + side] = int(share)
        real[BUDGET + side] = prefill_tokens_per_step(
            in_flight(share, order.held[unit]), order.prompt[unit], order.output[unit]
        )


@inner_kernel
def fits(rules, state, side, step, held, shared, finish, since):
    """Whether a request may hold KV from this step on.

    Parameters:
        held: private tokens it holds at once. shared: shared tokens that nobody else in flight holds.
        finish, since: its row.

    Below the capacity must stay: what is held with a token more for everyone, and the predicted peak of all. The right
    end's own peak must stay below its share. When nobody is in flight, one request always may.
    """
    number, total, count = state.number, state.pool.total, state.count
    if count[LEFT, ALL] + count[RIGHT, ALL] == 0:
        return True
    used = number[PRIVATE] + total[SHARED] - total[IDLE] + held + shared
    if used + number[DECODING] > rules.capacity:
        return False
    if rules.admission == BY_CAP:
        return used <= rules.cap
    alone = peak_with(state.rows[side], count[side], step, finish, since)
    if side == RIGHT and alone > number[MEMORY + RIGHT]:
        return False
    others = peak(state.rows[1 - side], count[1 - side], step)
    return alone + others + shared + total[SHARED] - total[IDLE] <= rules.capacity


@inner_kernel
def make_free(nodes, rules, state, tokens):
    """Drop idle segments until so many more tokens fit, or none is left."""
    total = state.pool.total
    while total[OLDEST] >= 0 and state.number[PRIVATE] + total[SHARED] + tokens > rules.capacity:
        drop_oldest(nodes.tokens, state.pool)


@inner_kernel
def enter(state, request, side, step, finish, since):
    """Give a request its row among those in flight."""
    insert_row(state.rows[side], state.count[side], step, finish, since)
    state.request[request, SIDE], state.request[request, DUE], state.request[request, SINCE_STEP] = side, finish, since


@inner_kernel
def _admit(jobs, nodes, order, rules, state, side, step):
    """Admit the next request of a side if it fits; returns it, or -1."""
    number = state.number
    place = number[NEXT + side]
    who = order.request[place]
    missing = missing_tokens(nodes.parent, nodes.tokens, state.pool, jobs.node[who])
    unused = unused_tokens(nodes.parent, nodes.tokens, state.pool, jobs.node[who])
    own = jobs.own[who]
    finish, since = step + jobs.expected[who], step - own
    if not fits(rules, state, side, step, own, unused, finish, since):
        return -1
    use(nodes.parent, nodes.tokens, state.pool, jobs.node[who])
    number[PRIVATE] += own
    make_free(nodes, rules, state, number[DECODING])
    enter(state, who, side, step, finish, since)
    row = state.request[who]
    row[ADMITTED], row[COMPUTED], row[PLACE] = step, own + missing, place
    number[NEXT + side] += 1 if side == LEFT else -1
    if order.density[order.unit[place]] < rules.density:
        number[HEAVY] += 1
    return who


@inner_kernel
def compute_prompts(jobs, nodes, order, rules, state, side, step, tokens, on_credit):
    """Compute prompt tokens of a side, at most so many; returns how many and the growth of squared positions.

    A side finishes the prompt it has begun, then admits. A prompt that is all in the pool costs nothing. On credit, it
    goes on while its credit is above zero; what it computes is taken off the credit in any case.
    """
    number, real = state.number, state.real
    used, pairs = 0, 0
    while used < tokens and not (on_credit and real[CREDIT + side] <= 0.0):
        who = number[PARTIAL + side]
        if who < 0:
            if number[NEXT + LEFT] > number[NEXT + RIGHT] or number[SWAPPED] > 0:
                break
            if rules.scan != SINGLE:
                split_pool(order, rules, state)
            who = _admit(jobs, nodes, order, rules, state, side, step)
            if who < 0:
                break
            number[TODO + side] = state.request[who, COMPUTED]
        chunk = min(number[TODO + side], tokens - used)
        at = jobs.prompt[who] - number[TODO + side]
        pairs += (at + chunk) * (at + chunk) - at * at
        used += chunk
        real[CREDIT + side] -= chunk
        number[TODO + side] -= chunk
        number[PARTIAL + side] = who
        if number[TODO + side] == 0:
            number[PARTIAL + side] = -1
            state.fresh[number[FRESH]] = who
            number[FRESH] += 1
    return used, pairs
