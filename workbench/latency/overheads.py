"""Time of a step that is neither arithmetic nor bytes: scheduling, kernel launches, sampling."""

import functools
from pathlib import Path

from workbench.paths import facts_folder
from workbench.profiles.checking import build
from workbench.profiles.quantities import Seconds
from workbench.profiles.toml_reading import read_toml, sources_in
from workbench.records import Record, not_negative


class Overheads(Record):
    """Overheads of an engine.

    Attributes:
        step_s: once a step.
        layer_s: once a layer; it stands for the launches of all its kernels.
        request_s: once for every request that gets a token.
    """

    step_s: Seconds
    layer_s: Seconds
    request_s: Seconds


def default_overheads() -> Overheads:
    """BLIS's defaults: 126 µs a step, 32 µs a layer, 4 µs a request."""
    return _read(facts_folder() / "latency" / "overheads.toml")


def overheads(step_s: float | None = None, layer_s: float | None = None, request_s: float | None = None) -> Overheads:
    """The user's own overheads in seconds; what is left out keeps its default.

    Raises:
        InputError: a negative or infinite number.

    >>> float(overheads(layer_s=0.0).layer_s), float(overheads(layer_s=0.0).step_s)
    (0.0, 0.000126)
    """
    given = {"step_s": step_s, "layer_s": layer_s, "request_s": request_s}
    given = {name: None if value is None else not_negative(value, name) for name, value in given.items()}
    default = default_overheads()
    return build(Overheads, {name: getattr(default, name) if value is None else value for name, value in given.items()})


@functools.cache
def _read(path: Path) -> Overheads:
    tables = read_toml(path)
    return build(Overheads, tables["overheads"], file=path, sources=sources_in(tables, path))
