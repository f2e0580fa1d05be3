"""The modules that hold the catalogue's entries, imported when something of theirs is first asked for."""

from importlib import import_module

MODULES = ("lambdascale", "blitzscale", "aegaeon", "chains", "blendserve", "serving", "theory", "showdown")
"""In the order of the catalogue; the ids of a module's entries begin with its name."""


def load(*names: str) -> None:
    """Import modules of entries; those of other names are none, and left out."""
    for name in MODULES:
        if name in names:
            import_module(f"workbench.catalogue.{name}")
