"""A user's own dispatch policy as compiled code: only it is compiled, not the event loop."""

from collections.abc import Callable

import numpy as np
from numba import types

from workbench.choosing import own_choice

SIGNATURE = types.int64(
    types.int64[::1], types.int64[::1], types.float64[::1], types.int64, types.float64[::1], types.float64[::1]
)
"""chain = f(inside, slots, rate_per_s, waiting, draw, memory); see `workbench.chains.policy.dispatch.choose`."""

_COUNTS, _NUMBERS = (types.Array(kind, 1, "C", readonly=True) for kind in (types.int64, types.float64))
_GIVEN = (_COUNTS, _COUNTS, _NUMBERS, types.int64, _NUMBERS, types.float64[::1])
_FAILED = -2


def dispatcher(function: Callable) -> Callable:
    """Compile a dispatch policy for the event loop.

    Parameters:
        function: takes `inside` int64[K] (jobs queued or in service on each chain, chains in order of falling rate),
            `slots` int64[K], `rate_per_s` float64[K], `waiting` (jobs in the central line), `draw` float64[2] (two
            uniform numbers of the job) and `memory` float64[K] (its own, zeros at the start); returns a chain, 0 to
            K - 1, or -1 to leave the job in the central line.

    Raises:
        InputError: the function does not take these six, or does not compile, with numba's reason.

    All arrays but `memory` are read only. A function that fails while it runs counts as one that names no chain.

    >>> slowest = dispatcher(lambda inside, slots, rate_per_s, waiting, draw, memory: inside.size - 1)
    """
    advice = "use numbers, arrays and loops only, write to `memory` only, or run it in SimPy"
    return own_choice(
        function, _GIVEN, SIGNATURE, _guarded, "f(inside, slots, rate_per_s, waiting, draw, memory)", advice
    )


def _guarded(asked: Callable) -> Callable:
    """The function with a number in place of a failure, which compiled code could only print and go on."""

    def ask(inside, slots, rate_per_s, waiting, draw, memory):
        try:
            chain = asked(inside, slots, rate_per_s, waiting, draw, memory)
        except Exception:
            return _FAILED
        return np.int64(chain) if np.int64(chain) == chain else _FAILED

    return ask
