"""Run a cluster in compiled code."""

from collections.abc import Callable

import numpy as np

from workbench.errors import UserError
from workbench.serving.kernels.layout import BAD_CHOICE
from workbench.serving.kernels.scaled_layout import LOGS_SHORT
from workbench.serving.kernels.serving import serve
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import Lowered, Outcome
from workbench.serving.model.telling_apart import too_many_decisions
from workbench.serving.policy.scalers import CHAINS


def run_compiled(lowered: Lowered, chooser: Callable | None = None, *, jumps: bool = True) -> Outcome:
    """What becomes of the requests of a run.

    Parameters:
        lowered: the run.
        chooser: dispatches in place of the numbered policy; made by `workbench.serving.policy.chooser`.
        jumps: False does every step in full: slower, the same outcome bit for bit.

    Raises:
        InputError: a run that makes no sense, with the array and row at fault.
        UserError: the chooser named a place that was not offered; pipelines beside weights that come by chains; more
            decisions of autoscalers than can be logged.
    """
    lowered = checked(lowered)
    scaling = lowered.scaling
    if scaling is not None and (scaling.source == CHAINS).any() and np.isfinite(scaling.piped_s).any():
        raise UserError("The compiled engine forms no pipelines where other weights come by chains; run it on SimPy.")
    requests, instances = lowered.requests, lowered.instances
    models = 1 + max(int(requests.model.max(initial=-1)), int(instances.model.max()))
    finished = serve(*lowered, models, chooser, jumps)
    if finished == LOGS_SHORT:
        raise too_many_decisions(scaling.tick_s)
    if finished == BAD_CHOICE:
        raise UserError(
            "The dispatch function failed, or returned a number that is no position in the places it was offered; "
            "return 0 to places.size - 1 (run on SimPy it says what was wrong)."
        )
    return Outcome(*finished)
