"""How long a real run will take, said before it begins."""

import importlib.util

from workbench.catalogue.spec import Spec


def real_run_s(entry: Spec) -> float:
    """Rough seconds of an experiment's real run; 0 where it has none, or where torch is missing and none is made."""
    if "torch" not in entry.backends or importlib.util.find_spec("torch") is None:
        return 0.0
    return entry.seconds.get("torch", 0.0)
