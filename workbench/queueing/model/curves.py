"""A formula over many arguments at once, as a table to draw."""

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from workbench.errors import UserError
from workbench.queueing.checking import Unstable
from workbench.queueing.model.answer import Answer

_LISTS = (list, range, np.ndarray, pl.Series)
_PLAIN = (int, float, str, bool, type(None))


def curve(formula: Callable[..., Answer], *, wait_quantiles: Sequence[float] = (), **arguments) -> pl.DataFrame:
    """What does a formula give along a line of arguments?

    Parameters:
        formula: one of this package, such as `mmc`.
        wait_quantiles: shares for which to add columns, 0.99 giving `wait_p99_s`; for formulas that know them.
        arguments: of the formula, by name; each one value, or a list, range, array or column of them. Lists go
            together, place by place, and must be equally long. A tuple is one value (the rates of unequal servers).

    Returns:
        A row for each place: the arguments, then all plain numbers and words of the answer. Where the load is 1 or more
        these are null, and the column `unstable` says why.

    Raises:
        UserError: lists of unequal length, or a wait whose distribution the formula does not know.

    >>> from workbench.queueing import mmc
    >>> table = curve(mmc, arrival_rate_per_s=[1.0, 2.0, 3.0], service_rate_per_s=1.0, servers=3)
    >>> table["mean_wait_s"].round(4).to_list(), table["unstable"].is_not_null().to_list()
    ([0.0455, 0.4444, None], [False, False, True])
    """
    lists = {name: _spread(value) for name, value in arguments.items() if isinstance(value, _LISTS)}
    lengths = {len(values) for values in lists.values()}
    if len(lengths) > 1:
        told = ", ".join(f"{len(values)} of {name}" for name, values in lists.items())
        raise UserError(f"The lists do not go together, place by place: {told}; make them equally long.")
    rows = []
    for place in range(lengths.pop() if lengths else 1):
        given = arguments | {name: values[place] for name, values in lists.items()}
        row = {name: value if isinstance(value, _PLAIN) else str(value) for name, value in given.items()}
        try:
            answer = formula(**given)
        except Unstable as unstable:
            rows.append(row | {"unstable": str(unstable)})
            continue
        if wait_quantiles and not hasattr(answer, "wait_quantile_s"):
            raise UserError(f"No distribution of the wait is known for {answer.queue}; leave wait_quantiles out.")
        fields = {name: getattr(answer, name) for name in type(answer).model_fields}
        row |= {name: value for name, value in fields.items() if isinstance(value, _PLAIN)}
        row |= {f"wait_p{100 * part:g}_s": answer.wait_quantile_s(part) for part in wait_quantiles}
        rows.append(row | {"unstable": None})
    table = pl.DataFrame(rows, infer_schema_length=None)
    return table.select(pl.exclude("unstable"), "unstable") if rows else table


def _spread(values) -> list:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)
