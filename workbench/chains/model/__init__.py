"""The analytic face of server chains: records in; placements, chains, bounds, optima and sample paths out."""

from workbench.chains.model.bounds import Bounds, Reference, bounds, exact, reference
from workbench.chains.model.composing import (
    Chain,
    Composition,
    Placement,
    allocate,
    compose,
    free_slots,
    place,
    reserve,
    whole_models,
)
from workbench.chains.model.compute_fit import fit_compute, straightness
from workbench.chains.model.fleet import Fleet
from workbench.chains.model.fractions import InFractions, in_fractions
from workbench.chains.model.hardware import (
    OVERHEADS,
    Block,
    Overheads,
    TokenTimes,
    block_of,
    fleet_of,
    servers_of,
    token_times,
    work_of,
)
from workbench.chains.model.in_any_order import random_orders
from workbench.chains.model.jobs import JobList, draw_jobs, jobs_of_requests, sized_jobs
from workbench.chains.model.online import Plan, Windows, missing_blocks, plan, plan_windows, switching_path
from workbench.chains.model.optimal import (
    Allocation,
    all_chains,
    best_groups,
    count_chains,
    fewest_chains,
    fewest_job_servers,
    greedy_job_servers,
)
from workbench.chains.model.paths import after_warm_up, dispatch_path
from workbench.chains.model.pipelines import NewChain, NewChains, loading_path, loading_steps, new_chains
from workbench.chains.model.routing import PetalsRules, Routed, bprr, petals, routed_path, with_work
from workbench.chains.model.serving import Served, chains_of, chains_with
from workbench.chains.model.sites import ORCHESTRATORS, Orchestrator, Sites, round_trips, sites_of
from workbench.chains.model.thresholds import BestDispatch, best_dispatch, break_even_rate, threshold_response
from workbench.chains.model.tuning import Tuning, tune, tune_each

__all__ = [
    "ORCHESTRATORS",
    "OVERHEADS",
    "Allocation",
    "BestDispatch",
    "Block",
    "Bounds",
    "Chain",
    "Composition",
    "Fleet",
    "InFractions",
    "JobList",
    "NewChain",
    "NewChains",
    "Orchestrator",
    "Overheads",
    "PetalsRules",
    "Placement",
    "Plan",
    "Reference",
    "Routed",
    "Served",
    "Sites",
    "TokenTimes",
    "Tuning",
    "Windows",
    "after_warm_up",
    "all_chains",
    "allocate",
    "best_dispatch",
    "best_groups",
    "block_of",
    "bounds",
    "bprr",
    "break_even_rate",
    "chains_of",
    "chains_with",
    "compose",
    "count_chains",
    "dispatch_path",
    "draw_jobs",
    "exact",
    "fewest_chains",
    "fewest_job_servers",
    "fit_compute",
    "fleet_of",
    "free_slots",
    "greedy_job_servers",
    "in_fractions",
    "jobs_of_requests",
    "loading_path",
    "loading_steps",
    "missing_blocks",
    "new_chains",
    "petals",
    "place",
    "plan",
    "plan_windows",
    "random_orders",
    "reference",
    "reserve",
    "round_trips",
    "routed_path",
    "servers_of",
    "sites_of",
    "sized_jobs",
    "straightness",
    "switching_path",
    "threshold_response",
    "token_times",
    "tune",
    "tune_each",
    "whole_models",
    "with_work",
    "work_of",
]
