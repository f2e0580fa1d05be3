"""Decisions about server chains: which blocks a server hosts, which chains run, which chain a job joins."""

from workbench.chains.policy.dispatch import CHOOSES, POLICIES, Dispatch, choose, policy_number
from workbench.chains.policy.functions import dispatcher

__all__ = ["CHOOSES", "POLICIES", "Dispatch", "choose", "dispatcher", "policy_number"]
