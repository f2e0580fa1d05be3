"""BlitzScale's integer program for the layers of each batch: a surrogate of the schedule, printed and amended."""

from typing import Literal

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from workbench.errors import InputError
from workbench.records import not_negative, whole

FORMS = ("printed", "amended")


def layer_program(
    batches: int,
    layers: int,
    load_layers: float,
    form: Literal["printed", "amended"] = "amended",
    first: int | None = 1,
) -> tuple[int, ...] | None:
    """How many layers of each batch the integer program puts on the new instance; None where it has no solution.

    It books the arrival of layers in units of work, not of time, so that its value is neither a bound nor what the two
    instances achieve: run the plan (`share_batches`) for that. The third constraint as printed asks for the time of a
    layer that is there at the start, and no plan meets that on the paper's own example; *amended* leaves it out.

    Parameters:
        batches, layers: N and L.
        load_layers: time in which one layer is loaded, in units of the time that one takes to execute.
        form: of the third constraint.
        first: layers of the first batch, for which the third constraint is not stated: one is there when it begins;
            None leaves it free.

    Raises:
        InputError: numbers that make no sense, an unknown form.

    Source: BlitzScale (OSDI'25) §5.2, equation 1; notes on BlitzScale, §2.5.

    >>> layer_program(6, 7, 6.0), layer_program(6, 7, 6.0, "printed")
    ((1, 2, 2, 2, 2, 2), None)
    """
    n, top = whole(batches, "batches", 1, 200), whole(layers, "layers", 1, 1000)
    load = not_negative(load_layers, "load_layers")
    if form not in FORMS:
        raise InputError(f"is {form!r}", f"choose one of {', '.join(FORMS)}", field="form")
    low, high = np.zeros(n), np.full(n, top)
    if first is not None:
        low[0] = high[0] = whole(first, "first", 0, top)
    i = np.arange(n)
    earlier = (i[None, :] < i[:, None]).astype(float)
    # The target is done with the first i batches before the source is done with those before them.
    in_time = earlier * 2 + np.eye(n)
    # (load - (N - i + 1)) T_i - sum of the earlier T <= load (amended) or 0, less (N - i + 1).
    rest = (n - i).astype(float)
    loaded = np.diag(load - rest) - earlier
    bound = (load if form == "amended" else 0.0) - rest
    found = milp(
        -rest,
        constraints=[
            LinearConstraint(in_time[1:], ub=top * i[1:]),
            LinearConstraint(loaded[1:], ub=bound[1:]),
        ]
        if n > 1
        else [],
        bounds=Bounds(low, high),
        integrality=np.ones(n),
    )
    return tuple(round(value) for value in found.x) if found.x is not None else None


def work_sum(plan: tuple[int, ...], layers: int) -> int:
    """What the program makes small, times N: the sum over batches of the source's work up to and with each.

    >>> work_sum((1, 2, 2, 2, 2, 2), 7)
    111
    """
    return int(np.cumsum([layers - moved for moved in plan]).sum())
