"""When KV caches may move between GPU and host, and how transfers share the way."""

from workbench.jit import lean_kernel


@lean_kernel
def may_come(leaving, used_bytes, bytes, room_bytes, others_leave):
    """Whether a request's KV cache may start on its way to the GPU.

    A transfer waits for the last one of its source blocks, and its target blocks must be free of past transfers. (That
    a step waits for the KV caches of its requests is the third rule; the loop of turns keeps it.)

    Parameters:
        leaving: whether its own way to the host has not ended.
        used_bytes: of KV caches on the GPU, those that are leaving included.
        bytes, room_bytes: of this one, and of all that the GPU can hold.
        others_leave: whether any KV cache is leaving, so that room will come; without that one must fit.

    Source: Aegaeon (SOSP'25) §5.3, Table 2.
    """
    if leaving:
        return False
    return used_bytes + bytes <= room_bytes or not others_leave


@lean_kernel
def fill_shares(wanted, count, total, share):
    """Max-min fair rates: nobody gets more than it wants, and what is left is shared evenly by those who want more.

    Parameters:
        wanted: float64, rate that each of the first `count` transfers could use.
        total: rate of what they share, or infinity.
        share: float64, to be filled; 0 at the start marks those not settled.
    """
    open_, left = count, total
    for k in range(count):
        share[k] = -1.0
    while open_ > 0:
        even = left / open_
        settled = 0
        for k in range(count):
            if share[k] < 0.0 and wanted[k] <= even:
                share[k] = wanted[k]
                left -= wanted[k]
                settled += 1
        if settled == 0:
            for k in range(count):
                if share[k] < 0.0:
                    share[k] = even
            return
        open_ -= settled
