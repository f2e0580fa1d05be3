"""How a cluster serves: requests are dispatched to instances, batched step by step, evicted, moved when hardware fails.

Rooms: `policy` holds the decisions, `kernels` the compiled event loop, `model` records in and tables out, `simulated`
the SimPy processes of the same semantics.
"""

from workbench.serving.model import (
    ENGINES,
    Engine,
    Failure,
    Group,
    Run,
    Scenario,
    StepForm,
    engine_named,
    lower,
    metrics,
    serve,
    step_form,
)
from workbench.serving.policy import ROUTES, chooser

__all__ = [
    "ENGINES",
    "ROUTES",
    "Engine",
    "Failure",
    "Group",
    "Run",
    "Scenario",
    "StepForm",
    "chooser",
    "engine_named",
    "lower",
    "metrics",
    "serve",
    "step_form",
]
