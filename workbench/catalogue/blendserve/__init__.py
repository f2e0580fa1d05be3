"""BlendServe: offline jobs in an order that keeps compute and memory busy at once. One module an experiment."""

from importlib import import_module

for _name in (
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "tab1",
    "dfs_share",
    "fig5",
    "fig6",
    "tab2",
    "fig7",
    "fig8",
    "fig9",
    "balance_gain",
    "fig10",
    "fig11",
    "tab3",
    "fig12",
    "tab4",
    "fig13",
    "fig14",
    "fig15",
    "sampling",
    "leaf_splits",
    "tree_operation",
    "overlap",
    "orders",
    "scanners",
    "retention",
    "run_length",
    "window",
    "hardware",
    "balanced_batch",
):
    import_module(f"{__name__}.{_name}")
