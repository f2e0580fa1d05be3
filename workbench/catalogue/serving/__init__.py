"""What serving rests on: loading weights, batching, and a replay of a measured run. One module an experiment."""

from importlib import import_module

for _name in ("load_time", "replay_validation", "startup_cliff", "detection", "throughput", "replay"):
    import_module(f"{__name__}.{_name}")
