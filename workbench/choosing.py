"""A user's own decision as compiled code, for event loops that ask it."""

import inspect
from collections.abc import Callable

import numba
from numba.core.errors import NumbaError

from workbench.errors import InputError
from workbench.records import shown


def own_choice(
    function: Callable, given: tuple, signature, guarded: Callable[[Callable], Callable], form: str, advice: str
) -> Callable:
    """A user's function as code that kernels call: only it is compiled, not the event loop that asks it.

    What a compiled function raises would be printed, and the loop would go on with whatever number it left behind. So
    its arrays' bounds are checked, and what asks it is `guarded`.

    Parameters:
        function: of the user, in Python, compiled by `numba.njit` or not.
        given: types of what it is given; arrays that it must not change are read-only.
        signature: of what kernels call.
        guarded: makes of the compiled function one that answers with a number in place of a failure.
        form: how it is written, in a sentence.
        advice: what to do where it does not compile.

    Raises:
        InputError: it does not take what it is given, or does not compile, with numba's reason.
    """
    if not callable(function):
        raise InputError(f"is {shown(function)}", "give the name of a policy, or a function", field="dispatch")
    plain = getattr(function, "py_func", function)
    try:
        inspect.signature(plain).bind(*given)
        return numba.cfunc(signature)(guarded(numba.njit([given], boundscheck=True)(plain)))
    except NumbaError as error:
        reason = next((line.strip() for line in str(error).splitlines()[1:] if line.strip()), "unknown reason")
        raise InputError(f"does not compile: {reason}", advice, field="dispatch") from None
    except (TypeError, ValueError):
        raise InputError(
            f"is no function of {len(given)} arguments that compiles", f"write it as {form}", field="dispatch"
        ) from None
