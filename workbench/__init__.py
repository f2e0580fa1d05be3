"""A research workbench on how large language models scale out fast and share GPUs well.

Every experiment asks a question and answers it by formula, by simulation and, where it can be, by a real run, beside
what was published. Start with `workbench.experiments()`, or open the notebooks with `workbench lab`.
"""

from importlib import import_module
from importlib.metadata import version as _version

_FACE = {
    "face": ("browse", "claims", "experiment", "experiments", "findings", "load", "sweep"),
    "operating": ("capacity", "compare", "plan", "policies", "simulate", "system", "systems"),
    "profiles": ("accelerator", "accelerators", "cluster", "clusters", "deployment", "model", "models", "slo"),
    "teaching": ("exercise",),
    "workloads": ("trace", "traces"),
}
"""What users call, by the room where it lies; a room is imported when something of it is first asked for."""

_ROOMS = {name: room for room, names in _FACE.items() for name in names}

__all__ = list(_ROOMS)
__version__ = _version("workbench-llm")


def __getattr__(name: str):
    if name in _ROOMS:
        return getattr(import_module(f"workbench.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
