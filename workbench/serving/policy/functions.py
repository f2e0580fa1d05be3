"""A user's own dispatch policy as compiled code: only it is compiled, not the event loop."""

from collections.abc import Callable

import numpy as np
from numba import types

from workbench.choosing import own_choice

SIGNATURE = types.int64(types.int64[::1], types.int64[::1], types.int64[::1], types.float64[::1], types.int64)
"""position = f(places, outstanding, tokens, draw, turn); see `workbench.serving.policy.dispatch.choose`."""

_COUNTS, _NUMBERS = (types.Array(kind, 1, "C", readonly=True) for kind in (types.int64, types.float64))
_GIVEN = (_COUNTS, _COUNTS, _COUNTS, _NUMBERS, types.int64)
_FAILED = -2


def chooser(function: Callable) -> Callable:
    """Compile a dispatch policy for the event loop.

    Parameters:
        function: takes `places` int64[k] (the instances that can take the request, as ascending places in the list of
            its model's instances), `outstanding` int64[k] (requests queued or running on each), `tokens` int64[k] (the
            tokens these still have to process), `draw` float64[2] (two uniform numbers of this request) and `turn` (the
            place behind the last choice); returns a position in `places`, 0 to k - 1.

    Raises:
        InputError: the function does not take these five, or does not compile, with numba's reason.

    All arrays are read only. A function that fails while it runs counts as one that names no position.

    >>> busiest = chooser(lambda places, outstanding, tokens, draw, turn: outstanding.argmax())
    """
    advice = "use numbers, arrays and loops only, and write to no array, or run it in SimPy"
    return own_choice(function, _GIVEN, SIGNATURE, _guarded, "f(places, outstanding, tokens, draw, turn)", advice)


def _guarded(asked: Callable) -> Callable:
    """The function with a number in place of a failure, which compiled code could only print and go on."""

    def ask(places, outstanding, tokens, draw, turn):
        try:
            position = asked(places, outstanding, tokens, draw, turn)
        except Exception:
            return _FAILED
        return np.int64(position) if np.int64(position) == position else _FAILED

    return ask
