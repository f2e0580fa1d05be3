"""A research workbench on how large language models scale out fast and share GPUs well.

Every experiment asks a question and answers it by formula, by simulation and, where it can be, by a real run, beside
what was published. Start with `workbench.experiments()`, or open the notebooks with `workbench lab`.
"""

from importlib import import_module
from importlib.metadata import version as _version

_FACE = (
    "accelerator",
    "accelerators",
    "browse",
    "capacity",
    "claims",
    "cluster",
    "clusters",
    "compare",
    "deployment",
    "exercise",
    "experiment",
    "experiments",
    "findings",
    "load",
    "model",
    "models",
    "plan",
    "policies",
    "simulate",
    "slo",
    "sweep",
    "system",
    "systems",
    "trace",
    "traces",
)

__all__ = list(_FACE)
__version__ = _version("workbench-llm")


def __getattr__(name: str):
    if name in _FACE:
        return getattr(import_module("workbench.face"), name)
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_FACE])
