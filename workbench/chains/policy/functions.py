"""A user's own dispatch policy as compiled code: only it is compiled, not the event loop."""

from collections.abc import Callable

import numba
from numba import types

from workbench.errors import InputError

SIGNATURE = types.int64(
    types.int64[::1], types.int64[::1], types.float64[::1], types.int64, types.float64[::1], types.float64[::1]
)
"""chain = f(inside, slots, rate_per_s, waiting, draw, memory); see `workbench.chains.policy.dispatch.choose`."""


def dispatcher(function: Callable) -> Callable:
    """Compile a dispatch policy for the event loop.

    Parameters:
        function: takes `inside` int64[K] (jobs queued or in service on each chain, chains in order of falling rate),
            `slots` int64[K], `rate_per_s` float64[K], `waiting` (jobs in the central line), `draw` float64[2] (two
            uniform numbers of the job) and `memory` float64[K] (its own, zeros at the start); returns a chain, 0 to
            K - 1, or -1 to leave the job in the central line.

    Raises:
        InputError: the function does not compile, with numba's reason.

    >>> slowest = dispatcher(lambda inside, slots, rate_per_s, waiting, draw, memory: inside.size - 1)
    """
    try:
        return numba.cfunc(SIGNATURE)(function)
    except numba.core.errors.NumbaError as error:
        reason = next((line.strip() for line in str(error).splitlines()[1:] if line.strip()), "unknown reason")
        raise InputError(
            f"does not compile: {reason}", "use numbers, arrays and loops only, or run it in SimPy", field="dispatch"
        ) from None
