"""A user's own dispatch policy as compiled code: only it is compiled, not the event loop."""

import inspect
from collections.abc import Callable

import numba
import numpy as np
from numba import types

from workbench.errors import InputError
from workbench.records import shown

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
    if not callable(function):
        raise InputError(f"is {shown(function)}", "give the name of a policy, or a function", field="dispatch")
    plain = getattr(function, "py_func", function)
    try:
        inspect.signature(plain).bind(*_GIVEN)
        asked = numba.njit([_GIVEN], boundscheck=True)(plain)
        return numba.cfunc(SIGNATURE)(_guarded(asked))
    except numba.core.errors.NumbaError as error:
        reason = next((line.strip() for line in str(error).splitlines()[1:] if line.strip()), "unknown reason")
        raise InputError(
            f"does not compile: {reason}",
            "use numbers, arrays and loops only, write to `memory` only, or run it in SimPy",
            field="dispatch",
        ) from None
    except (TypeError, ValueError):
        raise InputError(
            "is no function of six arguments",
            "write it as f(inside, slots, rate_per_s, waiting, draw, memory)",
            field="dispatch",
        ) from None


def _guarded(asked: Callable) -> Callable:
    """The function with a number in place of a failure, which compiled code could only print and go on."""

    def ask(inside, slots, rate_per_s, waiting, draw, memory):
        try:
            chain = asked(inside, slots, rate_per_s, waiting, draw, memory)
        except Exception:
            return _FAILED
        return np.int64(chain) if np.int64(chain) == chain else _FAILED

    return ask
