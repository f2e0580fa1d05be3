"""A user's own dispatch policy as compiled code: only it is compiled, not the event loop."""

from collections.abc import Callable

import numba
from numba import types

from workbench.errors import InputError

SIGNATURE = types.int64(types.int64[::1], types.int64[::1], types.int64[::1], types.float64[::1], types.int64)
"""position = f(places, outstanding, tokens, draw, turn); see `workbench.serving.policy.dispatch.choose`."""


def chooser(function: Callable) -> Callable:
    """Compile a dispatch policy for the event loop.

    Parameters:
        function: takes `places` int64[k] (the instances that can take the request, as ascending places in the list of
            its model's instances), `outstanding` int64[k] (requests queued or running on each), `tokens` int64[k] (the
            tokens these still have to process), `draw` float64[2] (two uniform numbers of this request) and `turn` (the
            place behind the last choice); returns a position in `places`, 0 to k - 1.

    Raises:
        InputError: the function does not compile, with numba's reason.

    >>> busiest = chooser(lambda places, outstanding, tokens, draw, turn: outstanding.argmax())
    """
    try:
        return numba.cfunc(SIGNATURE)(function)
    except numba.core.errors.NumbaError as error:
        reason = next((line.strip() for line in str(error).splitlines()[1:] if line.strip()), "unknown reason")
        raise InputError(
            f"does not compile: {reason}", "use numbers, arrays and loops only, or run it in SimPy", field="dispatch"
        ) from None
