"""Decisions of scaling with half-loaded instances as pure functions."""

from workbench.scaling.policy.covering import even_cover
from workbench.scaling.policy.forming import form_planned, form_searched
from workbench.scaling.policy.pipeline import Pipeline, executable
from workbench.scaling.policy.planning import group_pipelines, halving_lengths
from workbench.scaling.policy.starting import Senders, Start, allocation_order, locality_start, warm_order
from workbench.scaling.policy.switching import Switch, keeps_kv_by, leave_times, next_place

__all__ = [
    "Pipeline",
    "Senders",
    "Start",
    "Switch",
    "allocation_order",
    "even_cover",
    "executable",
    "form_planned",
    "form_searched",
    "group_pipelines",
    "halving_lengths",
    "keeps_kv_by",
    "leave_times",
    "locality_start",
    "next_place",
    "warm_order",
]
