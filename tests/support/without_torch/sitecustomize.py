"""A Python that has no torch, nor has any process that it starts: put this folder on PYTHONPATH."""

from importlib.machinery import PathFinder

_find = PathFinder.find_spec


@classmethod
def _find_all_but_torch(cls, name, path=None, target=None):
    return None if name.split(".")[0] == "torch" else _find(name, path, target)


PathFinder.find_spec = _find_all_but_torch
