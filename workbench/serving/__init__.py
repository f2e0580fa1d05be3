"""How a cluster serves: requests are dispatched to instances, batched step by step, evicted, moved when hardware fails.

Rooms: `policy` holds the decisions, `kernels` the compiled event loop, `model` records in and tables out, `simulated`
the SimPy processes of the same semantics.
"""

from workbench.serving.model import (
    ENGINES,
    Autoscaler,
    Engine,
    Failure,
    Group,
    Multicast,
    MulticastPlan,
    Network,
    Part,
    Pool,
    Run,
    Scenario,
    StartUp,
    StepForm,
    Update,
    Weights,
    engine_named,
    fitted_form,
    lower,
    metrics,
    network_on,
    pool_on,
    serve,
    step_form,
    weights_on,
)
from workbench.serving.policy import ROUTES, chooser

__all__ = [
    "ENGINES",
    "ROUTES",
    "Autoscaler",
    "Engine",
    "Failure",
    "Group",
    "Multicast",
    "MulticastPlan",
    "Network",
    "Part",
    "Pool",
    "Run",
    "Scenario",
    "StartUp",
    "StepForm",
    "Update",
    "Weights",
    "chooser",
    "engine_named",
    "fitted_form",
    "lower",
    "metrics",
    "network_on",
    "pool_on",
    "serve",
    "step_form",
    "weights_on",
]
