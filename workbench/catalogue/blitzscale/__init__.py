"""BlitzScale: live autoscaling over the network. One module an experiment."""

from importlib import import_module

for _name in (
    "cross",
    "fig1",
    "fig3",
    "fig4",
    "fig8",
    "fig9",
    "fig13",
    "fig14",
    "fig15",
    "fig17",
    "fig18",
    "fig19",
    "fig20",
    "fig21",
    "fig22",
    "fig23",
    "fig24",
    "live_cluster",
    "o1_caching",
    "plan",
    "plan_gap",
    "redundancy",
    "tables",
):
    import_module(f"{__name__}.{_name}")
