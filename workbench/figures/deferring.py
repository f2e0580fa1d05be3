"""Plotly without what it imports only to ask for a version."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType


def load_renderers() -> None:
    """Import what plotly shows figures with, but not nbformat: of that it asks no more than the version.

    Nbformat brings jsonschema, and with what JupyterLab needs that reads the grammar of international addresses: 1.3 s
    of the processor, more than all else that a first figure needs of plotly and of widgets.
    """
    with _later("nbformat"):
        _ = import_module("plotly.io").renderers


class _Later(ModuleType):
    """Stands for a package that is imported when something other than its version is asked for."""

    def __getattr__(self, name: str):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _later(name: str) -> Iterator[None]:
    """Whoever imports a package in here gets a `_Later`; whoever does so afterwards, the package."""
    try:
        stand_in = _Later(name)
        stand_in.__version__ = version(name)
    except PackageNotFoundError:
        yield
        return
    if sys.modules.setdefault(name, stand_in) is not stand_in:
        yield
        return
    try:
        yield
    finally:
        if sys.modules.get(name) is stand_in:
            del sys.modules[name]
