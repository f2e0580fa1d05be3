"""Multicast schedules as pure functions: who sends which block to whom, and in which step."""

from workbench.transfer.policy.binomial import binomial_pipeline, shares_vertex
from workbench.transfer.policy.check import arrivals, check, check_columns, held_of
from workbench.transfer.policy.coverage import first_pipeline
from workbench.transfer.policy.faasnet import faasnet_tree, fibonacci_tree
from workbench.transfer.policy.k_way import block_order, k_way, sent_order, sub_groups
from workbench.transfer.policy.multi_chain import chain_members, multi_chain
from workbench.transfer.policy.order import by_bandwidth
from workbench.transfer.policy.replan import replan
from workbench.transfer.policy.schedule import Schedule, check_cells, check_size, from_columns, from_transfers
from workbench.transfer.policy.sharded import hosts_and_share, sharded
from workbench.transfer.policy.table import (
    SCHEDULES,
    ScheduleKind,
    all_options,
    flow_form,
    log2_ceiling,
    lower_bound,
    make_schedule,
    schedule_blocks,
    step_form,
    steps,
)
from workbench.transfer.policy.trees import binary_tree, binomial_tree
from workbench.transfer.policy.unicast import chain, ring_broadcast, sequential

__all__ = [
    "SCHEDULES",
    "Schedule",
    "ScheduleKind",
    "all_options",
    "arrivals",
    "binary_tree",
    "binomial_pipeline",
    "binomial_tree",
    "block_order",
    "by_bandwidth",
    "chain",
    "chain_members",
    "check",
    "check_cells",
    "check_columns",
    "check_size",
    "faasnet_tree",
    "fibonacci_tree",
    "first_pipeline",
    "flow_form",
    "from_columns",
    "from_transfers",
    "held_of",
    "hosts_and_share",
    "k_way",
    "log2_ceiling",
    "lower_bound",
    "make_schedule",
    "multi_chain",
    "replan",
    "ring_broadcast",
    "schedule_blocks",
    "sent_order",
    "sequential",
    "sharded",
    "shares_vertex",
    "step_form",
    "steps",
    "sub_groups",
]
