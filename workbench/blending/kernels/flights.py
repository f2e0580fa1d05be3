"""Requests in flight by expected finish, and those that decode by the step in which something happens to them."""

from workbench.blending.policy.peak import FINISH, SINCE
from workbench.jit import inner_kernel


@inner_kernel
def insert_row(rows, count, finish, since):
    """Insert a row, behind those that finish later or at the same step."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if rows[middle, FINISH] >= finish:
            low = middle + 1
        else:
            high = middle
    for place in range(count, low, -1):
        rows[place, FINISH], rows[place, SINCE] = rows[place - 1, FINISH], rows[place - 1, SINCE]
    rows[low, FINISH], rows[low, SINCE] = finish, since


@inner_kernel
def remove_row(rows, count, finish, since):
    """Remove one row that reads so."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if rows[middle, FINISH] > finish:
            low = middle + 1
        else:
            high = middle
    while rows[low, SINCE] != since:
        low += 1
    for place in range(low, count - 1):
        rows[place, FINISH], rows[place, SINCE] = rows[place + 1, FINISH], rows[place + 1, SINCE]


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
