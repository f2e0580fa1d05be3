"""What serving rests on: how long weights take to load. One module an experiment."""

from importlib import import_module

for _name in ("load_time",):
    import_module(f"{__name__}.{_name}")
