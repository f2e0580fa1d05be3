"""Who is done first: one skew heap an instance, linked through the rows of requests, so that it has no size to choose.

A skew heap keeps the smallest key on top and swaps the children of every node it passes, which keeps the cost of an
operation logarithmic over time (Sleator and Tarjan 1986).
"""

import numpy as np

from workbench.jit import inner_kernel
from workbench.serving.kernels.layout import FINISH, LEFT, RIGHT


@inner_kernel
def melded(requests, a, b):
    """The root of two heaps made one; -1 is the empty heap."""
    if a < 0:
        return b
    if b < 0:
        return a
    if requests[b, FINISH] < requests[a, FINISH]:
        a, b = b, a
    root = a
    while b >= 0:
        # `a` keeps its place; what comes to its right becomes its left child, the heap of the two smaller ones.
        right = requests[a, RIGHT]
        requests[a, RIGHT] = requests[a, LEFT]
        if right >= 0 and requests[right, FINISH] <= requests[b, FINISH]:
            requests[a, LEFT] = right
            a = right
        else:
            requests[a, LEFT] = b
            a, b = b, right
    return root


@inner_kernel
def pushed(requests, root, r):
    """The root after a request has been added."""
    requests[r, LEFT] = -1
    requests[r, RIGHT] = -1
    return melded(requests, root, r)


@inner_kernel
def popped(requests, root):
    """The root after the top has been taken out."""
    return melded(requests, np.int64(requests[root, LEFT]), np.int64(requests[root, RIGHT]))
