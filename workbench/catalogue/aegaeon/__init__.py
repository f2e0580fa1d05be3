"""Experiments of Aegaeon (token-level pooling of many models), one module an experiment."""

from importlib import import_module

MODULES = (
    "fig1", "fig2", "fig3", "fig4", "fig6", "quota_example", "load_time", "fig7", "fig8", "fig10", "tab1", "fig9",
    "fig11", "fig12", "fig13", "fig14", "fig15", "fig16", "fig17", "q_max", "prefill_split", "switch_bandwidth",
    "fig18", "production", "admission", "buffer_cap", "fairness", "split", "operator",
)  # fmt: skip

for _name in MODULES:
    import_module(f"{__name__}.{_name}")
