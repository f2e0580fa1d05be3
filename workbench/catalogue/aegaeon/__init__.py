"""Experiments of Aegaeon (token-level pooling of many models), one module an experiment."""

from importlib import import_module

for _name in ("fig4", "fig11", "fig12", "fig13", "q_max", "prefill_split", "switch_bandwidth"):
    import_module(f"{__name__}.{_name}")
