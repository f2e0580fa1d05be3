"""Whether torch is there, asked without importing it."""

from importlib.util import find_spec

from workbench.errors import MissingExtra


def require_torch(feature: str) -> None:
    """Raise `MissingExtra` with the install command unless torch can be imported.

    The process that asks never needs torch itself: only the workers import it, so a notebook stays small.
    """
    if find_spec("torch") is None:
        raise MissingExtra(feature, "torch", "torch")
