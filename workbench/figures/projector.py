"""A figure for the back row of a lecture hall: letters, marks, lines and the room round them all grow alike."""

from collections.abc import Mapping
from typing import Any

PROJECTOR = 1.5
"""How much larger everything is for a projector."""

_LENGTHS = {"font": ("size",), "marker": ("size",), "line": ("width",), "margin": ("l", "r", "t", "b")}
"""Which numbers inside a setting are pixels, by how the setting's name ends."""

_ANYWHERE = ("height", "standoff", "xshift", "yshift", "ax", "ay")


def enlarged(sketch: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """The sketch of a figure with every length in pixels times a factor; data and the width stay as they are.

    Parameters:
        sketch: `data` and `layout`, as `figures.sketch` gives them.
        scale: the factor.
    """
    return {part: _grown(part, sketch[part], scale) for part in ("data", "layout")}


def _grown(name: str, value: Any, scale: float) -> Any:
    if isinstance(value, Mapping):
        inside = next((keys for end, keys in _LENGTHS.items() if name.endswith(end)), ())
        pixels = (*inside, *_ANYWHERE)
        return {
            key: _times(item, scale) if key in pixels and not isinstance(item, Mapping) else _grown(key, item, scale)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        return [_grown(name, item, scale) for item in value]
    return value


def _times(length: Any, scale: float) -> Any:
    if isinstance(length, list | tuple):
        return [_times(item, scale) for item in length]
    return length * scale if isinstance(length, int | float) else length
