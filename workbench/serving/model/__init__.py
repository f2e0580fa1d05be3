"""Records in, tables out: what a serving cluster is made of and what became of its requests."""

from workbench.serving.model.autoscaling import Autoscaler, Pool
from workbench.serving.model.engine import run_compiled
from workbench.serving.model.happenings import Failure, LinkFailure, Update
from workbench.serving.model.hardware import network_on, pool_on, weights_on
from workbench.serving.model.kv_network import Network
from workbench.serving.model.lowered import Failures, Instances, Lowered, Outages, Outcome, Requests, Updates
from workbench.serving.model.measuring import metrics
from workbench.serving.model.multicast_plan import MulticastPlan
from workbench.serving.model.run import Run, serve
from workbench.serving.model.scaled import Scaling
from workbench.serving.model.scenario import ENGINES, Engine, Group, Scenario, engine_named, lower
from workbench.serving.model.start_up import Multicast, Part, StartUp, Weights
from workbench.serving.model.step_forms import StepForm, fitted_form, step_form

__all__ = [
    "ENGINES",
    "Autoscaler",
    "Engine",
    "Failure",
    "Failures",
    "Group",
    "Instances",
    "LinkFailure",
    "Lowered",
    "Multicast",
    "MulticastPlan",
    "Network",
    "Outages",
    "Outcome",
    "Part",
    "Pool",
    "Requests",
    "Run",
    "Scaling",
    "Scenario",
    "StartUp",
    "StepForm",
    "Update",
    "Updates",
    "Weights",
    "engine_named",
    "fitted_form",
    "lower",
    "metrics",
    "network_on",
    "pool_on",
    "run_compiled",
    "serve",
    "step_form",
    "weights_on",
]
