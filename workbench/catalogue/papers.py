"""The modules that hold the catalogue's entries, imported when the catalogue is first asked for."""

import functools
from importlib import import_module

MODULES = ("lambdascale", "blitzscale", "aegaeon", "chains", "blendserve", "serving", "theory", "showdown")


@functools.cache
def load() -> None:
    """Import every module of entries."""
    for name in MODULES:
        import_module(f"workbench.catalogue.{name}")
