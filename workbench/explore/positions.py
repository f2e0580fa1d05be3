"""Which positions the sliders of an exported explorer have."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.catalogue.parameters import Parameter, name_of
from workbench.catalogue.spec import Spec
from workbench.errors import UnknownName, UserError
from workbench.records import shown

USUAL = 7
"""Positions of a slider for which none are given."""

MOST_POSITIONS = 1_000
"""More positions of all sliders together are refused before the first is computed."""

FIRST = 2
"""How many parameters move where none is named."""


class Slider(NamedTuple):
    """One control of an exported page.

    Attributes:
        name, label: of the parameter.
        values: what it can be set to, in order.
        texts: each value as the page shows it, with its unit.
        start: index of the value it stands at first.
        choice: whether the values are texts to choose from, and no numbers.
    """

    name: str
    label: str
    values: tuple[Any, ...]
    texts: tuple[str, ...]
    start: int
    choice: bool


def sliders_of(entry: Spec, values: Mapping[str, Any], asked: Mapping[str, Any] | Iterable[str] | None):
    """The sliders that were asked for, every value checked; the first two parameters with a range where none was.

    Parameters:
        entry: the experiment.
        values: of all its parameters; a slider starts there if that is one of its positions.
        asked: parameter -> its positions, or how many; or names alone.

    Raises:
        UserError: an unknown parameter, a value out of range, a parameter whose positions must be listed.
    """
    if asked is None:
        asked = [item.name for item in entry.parameters if _ranged(item) or _choices(item)][:FIRST]
    elif isinstance(asked, str):
        asked = [asked]
    if not isinstance(asked, Iterable):
        raise UserError(f"{entry.id}: sliders are names, or name -> values, got {shown(asked)}.")
    asked = asked if isinstance(asked, Mapping) else [name if isinstance(name, str) else shown(name) for name in asked]
    wanted = dict(asked) if isinstance(asked, Mapping) else dict.fromkeys(asked, USUAL)
    if not wanted:
        raise UserError(f"{entry.id} has nothing to move; name a parameter and its values (sliders={{name: values}}).")
    known = {item.name: item for item in entry.parameters}
    for name in wanted:
        if name not in known:
            raise UnknownName(f"parameter of {entry.id}", str(name), known)
    return [_slider(entry, known[name], values[name], places) for name, places in wanted.items()]


def _slider(entry: Spec, item: Parameter, start: Any, places: Any) -> Slider:
    if isinstance(places, int) and not isinstance(places, bool):
        found = _spread(entry, item, start, places)
    elif isinstance(places, Iterable) and not isinstance(places, str):
        found = tuple(dict.fromkeys(item.check(place, entry.id) for place in places))
    else:
        raise UserError(f"{entry.id}: slider {item.name!r} takes a list of values, or how many, got {places!r}.")
    if not found:
        raise UserError(f"{entry.id}: slider {item.name!r} has no positions; give its values.")
    unit = f" {item.about.unit}" if item.about.unit else ""
    texts = tuple(f"{value:g}{unit}" if _numeric(item) else name_of(value) for value in found)
    return Slider(
        item.name, item.about.label, found, texts, found.index(start) if start in found else 0, not _numeric(item)
    )


def _spread(entry: Spec, item: Parameter, start: Any, count: int) -> Sequence[Any]:
    """So many values over the parameter's range, both ends and the starting value among them."""
    if choices := _choices(item):
        return choices
    if not _ranged(item):
        raise UserError(f"{entry.id}: slider {item.name!r} has no range; list its values (sliders={{...}}).")
    if count < 2:
        raise UserError(f"{entry.id}: slider {item.name!r} needs 2 positions or more, got {count}.")
    if count > MOST_POSITIONS:
        raise UserError(
            f"{entry.id}: slider {item.name!r} takes at most {MOST_POSITIONS:,} positions, got {shown(count)}."
        )
    low, high = item.about.low, item.about.high
    log = item.about.log or (low > 0 and high / low >= 50)
    shares = [index / (count - 1) for index in range(count)]
    places = [low * (high / low) ** share if log else low + (high - low) * share for share in shares]
    inner = [round(place) if item.kind is int else _short(place) for place in places[1:-1]]
    spread = [item.kind(value) for value in (low, *inner, high)]
    nearest = min(range(count), key=lambda index: abs(spread[index] - start))
    if start not in spread:
        spread[nearest] = start if 0 < nearest < count - 1 else spread[nearest]
    return tuple(sorted({*spread, start}))


def _short(number: float) -> float:
    """Two significant digits: a position is a round number."""
    return 0.0 if number == 0 else round(number, 1 - math.floor(math.log10(abs(number))))


def _numeric(item: Parameter) -> bool:
    return item.kind in (int, float) and not item.many


def _ranged(item: Parameter) -> bool:
    return _numeric(item) and item.about.low is not None and item.about.high is not None


def _choices(item: Parameter) -> tuple[Any, ...]:
    if item.many:
        return ()
    return (False, True) if item.kind is bool else item.about.choices
