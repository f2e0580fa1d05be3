"""Run a cluster in compiled code."""

from collections.abc import Callable

import numpy as np

from workbench.errors import UserError
from workbench.serving.kernels.serving import serve
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import DONE, Lowered, Outcome, Requests


def run_compiled(lowered: Lowered, chooser: Callable | None = None, *, jumps: bool = True) -> Outcome:
    """What becomes of the requests of a run.

    Parameters:
        lowered: the run.
        chooser: dispatches in place of the numbered policy; made by `workbench.serving.policy.chooser`.
        jumps: False does every step in full: slower, the same outcome bit for bit.

    Raises:
        InputError: a run that makes no sense, with the array and row at fault.
        UserError: the chooser named a place that was not offered.
    """
    lowered = checked(lowered)
    requests, instances = lowered.requests, lowered.instances
    models = 1 + max(int(requests.model.max(initial=-1)), int(instances.model.max()))
    finished = serve(*lowered, models, chooser, jumps)
    if finished is None:
        raise UserError(
            "The dispatch function returned a number that is no position in the places it was offered; "
            "return 0 to places.size - 1."
        )
    return _filled(Outcome(*finished), requests)


def _filled(outcome: Outcome, requests: Requests) -> Outcome:
    """With the columns that the compiled loop does not write."""
    n = requests.output.size
    prefill = np.where((outcome.status == DONE) & (requests.output == 0), outcome.instance, -1)
    last = outcome.segments[np.append(np.diff(outcome.segments[:, 0]) != 0, True)[: len(outcome.segments)]]
    prefill[last[:, 0]] = last[:, 3]
    loads = np.column_stack([outcome.loads, np.full(len(outcome.loads), np.nan)])
    return outcome._replace(loads=loads, cached=np.zeros(n, np.int64), prefill=prefill)
