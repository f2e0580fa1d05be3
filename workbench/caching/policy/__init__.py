"""Decisions of caches: what has expired, which node serves a request, and from where it starts."""

from workbench.caching.policy.keep_alive import COLD, HOT, STARTS, WARM, expired, pick_node, start_kind, start_s

__all__ = ["COLD", "HOT", "STARTS", "WARM", "expired", "pick_node", "start_kind", "start_s"]
