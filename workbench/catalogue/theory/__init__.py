"""What the experiments rest on: schedules, links and, later, queues. One module an experiment."""

from importlib import import_module

for _name in ("multicast", "schedule", "link_validation"):
    import_module(f"{__name__}.{_name}")
