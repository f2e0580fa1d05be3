"""Systems at work: what a name stands for, one run of it, two compared, how much load it bears, how small it can be."""

from workbench.operating.capacity_search import Capacity, capacity
from workbench.operating.choices import policies, system, systems
from workbench.operating.comparing import Comparison, compare
from workbench.operating.planning import Plan, plan
from workbench.operating.pool_run import PooledRun
from workbench.operating.pool_systems import PoolSystem
from workbench.operating.run_handle import Run
from workbench.operating.saving import is_saved_run, load_run
from workbench.operating.scaling_rule import Rule
from workbench.operating.simulating import simulate
from workbench.operating.system_record import System

__all__ = [
    "Capacity",
    "Comparison",
    "Plan",
    "PoolSystem",
    "PooledRun",
    "Rule",
    "Run",
    "System",
    "capacity",
    "compare",
    "is_saved_run",
    "load_run",
    "plan",
    "policies",
    "simulate",
    "system",
    "systems",
]
