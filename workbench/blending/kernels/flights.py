"""Requests in flight by expected finish, with the peaks of what they will hold; and a ring of those that decode.

The rows of a side stand by descending finish: first those that are expected to go on, then those that should be done.
The k-th of the former has a term, what the first k hold when the k-th finishes; the largest one is the peak (see
`policy.peak`). One more row leaves the terms before it as they are and adds its own tokens to those behind it, so two
running maxima answer what the peak would be with it.
"""

from workbench.jit import inner_kernel

FINISH, SINCE, TERM, BEFORE, BEHIND = range(5)
"""Columns: finish, since; the term; the largest term up to here; the largest term and finish together from here on."""
ROW_COLUMNS = 5
GOING, ALL, LATE_SINCE = 0, 1, 2
"""Counts of a side: rows expected to go on, all rows, the sum of `since` over those that should be done."""


@inner_kernel
def _refresh(rows, count, place):
    """Mend the terms from a place on, and the maxima."""
    total = place * rows[place - 1, FINISH] - rows[place - 1, TERM] if place else 0
    for at in range(place, count[GOING]):
        total += rows[at, SINCE]
        term = (at + 1) * rows[at, FINISH] - total
        rows[at, TERM] = term
        rows[at, BEFORE] = max(rows[at - 1, BEFORE], term) if at else term
    best = 0
    for at in range(count[GOING] - 1, -1, -1):
        best = max(best, rows[at, TERM] + rows[at, FINISH])
        if at < place and rows[at, BEHIND] == best:
            break
        rows[at, BEHIND] = best


@inner_kernel
def _first_below(rows, high, finish):
    """The first of the rows before `high` whose finish is below the given one."""
    low = 0
    while low < high:
        middle = (low + high) // 2
        if rows[middle, FINISH] >= finish:
            low = middle + 1
        else:
            high = middle
    return low


@inner_kernel
def expire(rows, count, step):
    """Set rows apart whose finish lies before a step."""
    before = count[GOING]
    while count[GOING] > 0 and rows[count[GOING] - 1, FINISH] < step:
        count[GOING] -= 1
        count[LATE_SINCE] += rows[count[GOING], SINCE]
    if count[GOING] < before:
        _refresh(rows, count, count[GOING])


@inner_kernel
def insert_row(rows, count, step, finish, since):
    """Insert a row; one whose finish lies before the step is late."""
    place = _first_below(rows, count[ALL], finish)
    for at in range(count[ALL], place, -1):
        rows[at, FINISH], rows[at, SINCE] = rows[at - 1, FINISH], rows[at - 1, SINCE]
    rows[place, FINISH], rows[place, SINCE] = finish, since
    count[ALL] += 1
    if finish >= step:
        count[GOING] += 1
        _refresh(rows, count, place)
    else:
        count[LATE_SINCE] += since


@inner_kernel
def remove_row(rows, count, finish, since):
    """Remove one row that reads so."""
    place = _first_below(rows, count[ALL], finish + 1)
    while rows[place, SINCE] != since:
        place += 1
    count[ALL] -= 1
    for at in range(place, count[ALL]):
        rows[at, FINISH], rows[at, SINCE] = rows[at + 1, FINISH], rows[at + 1, SINCE]
    if place < count[GOING]:
        count[GOING] -= 1
        _refresh(rows, count, place)
    else:
        count[LATE_SINCE] -= since


@inner_kernel
def _late(count, step):
    """What rows hold that should be done, at the end of the step before."""
    return (count[ALL] - count[GOING]) * (step - 1) - count[LATE_SINCE]


@inner_kernel
def peak(rows, count, step):
    """The peak of a side's private tokens."""
    going = count[GOING]
    return (max(rows[going - 1, BEFORE], 0) if going else 0) + _late(count, step)


@inner_kernel
def peak_with(rows, count, step, finish, since):
    """The peak of a side's private tokens with one more row."""
    place = _first_below(rows, count[GOING], finish)
    total = place * rows[place - 1, FINISH] - rows[place - 1, TERM] if place else 0
    best = max((place + 1) * finish - total - since, 0)
    if place:
        best = max(best, rows[place - 1, BEFORE])
    if place < count[GOING]:
        best = max(best, rows[place, BEHIND] - since)
    return best + _late(count, step)


@inner_kernel
def link(head, after, ahead, slot, request):
    """Put a request at the front of the list of a slot."""
    first = head[slot]
    after[request], ahead[request] = first, -1 - slot
    if first >= 0:
        ahead[first] = request
    head[slot] = request


@inner_kernel
def unlink(head, after, ahead, request):
    """Take a request out of the list it is in."""
    before, following = ahead[request], after[request]
    if before < 0:
        head[-1 - before] = following
    else:
        after[before] = following
    if following >= 0:
        ahead[following] = before
