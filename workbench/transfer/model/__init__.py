"""The analytic face of transfer: records and numbers in, seconds and tables out, each with its formula."""

from workbench.transfer.model.arriving import Run, arrival_steps, check_run, completion
from workbench.transfer.model.chains import chain_of_blocks_s, forwarding_chain_s, layer_ready_s, star_s
from workbench.transfer.model.cluster_network import network_of
from workbench.transfer.model.collectives import (
    recursive_doubling_all_gather_s,
    ring_all_gather_s,
    ring_all_reduce_s,
    scatter_all_gather_broadcast_s,
    send_receive_s,
)
from workbench.transfer.model.cost import Cost, Hockney, LogGP, stream_s
from workbench.transfer.model.fitting import fit_hockney, leave_one_out
from workbench.transfer.model.lanes import TwoLevel, lanes_completion_s, two_level
from workbench.transfer.model.many_sources import KWaySteps, k_way_steps, milestones_of
from workbench.transfer.model.network import Endpoint, Network, Resource
from workbench.transfer.model.running import Times, run_times
from workbench.transfer.model.seconds import MOST_BLOCKS, BlockCount, multicast_s, optimal_blocks, schedule_s
from workbench.transfer.model.slow_link import slow_link_share, slow_link_share_of_chain
from workbench.transfer.model.uniform import uniform_network

__all__ = [
    "MOST_BLOCKS",
    "BlockCount",
    "Cost",
    "Endpoint",
    "Hockney",
    "KWaySteps",
    "LogGP",
    "Network",
    "Resource",
    "Run",
    "Times",
    "TwoLevel",
    "arrival_steps",
    "chain_of_blocks_s",
    "check_run",
    "completion",
    "fit_hockney",
    "forwarding_chain_s",
    "k_way_steps",
    "lanes_completion_s",
    "layer_ready_s",
    "leave_one_out",
    "milestones_of",
    "multicast_s",
    "network_of",
    "optimal_blocks",
    "recursive_doubling_all_gather_s",
    "ring_all_gather_s",
    "ring_all_reduce_s",
    "run_times",
    "scatter_all_gather_broadcast_s",
    "schedule_s",
    "send_receive_s",
    "slow_link_share",
    "slow_link_share_of_chain",
    "star_s",
    "stream_s",
    "two_level",
    "uniform_network",
]
