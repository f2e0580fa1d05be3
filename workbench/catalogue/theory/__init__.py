"""What the experiments rest on: schedules, links, waiting lines and step times. One module an experiment."""

from importlib import import_module

for _name in (
    "multicast",
    "schedule",
    "link_validation",
    "queues",
    "approximations",
    "pool_size",
    "intervals",
    "step_time",
    "latency_validation",
    "tpot_validation",
):
    import_module(f"{__name__}.{_name}")
