"""The server-chain paper's figures and tables, and what it leaves open. One module an experiment."""

from importlib import import_module

for _name in (
    "chain_example",
    "builder",
    "compute_profile",
    "communication_profile",
    "gbp_cr",
    "greedy_wrong",
    "gca",
    "dispatchers",
    "bounds",
    "tuning",
    "c_star",
    "overall",
    "arrivals_test",
    "service_time_test",
    "tab1",
    "bursts",
    "assumptions",
    "bound_gap",
    "online",
    "edge_cloud",
    "finer_blocks",
    "concurrency",
):
    import_module(f"{__name__}.{_name}")
