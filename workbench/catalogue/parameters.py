"""An experiment's parameters: read off its signature, checked, and described for widgets, command line and docs."""

import inspect
import math
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import UnknownName, UserError
from workbench.profiles import Accelerator, Cluster, Model
from workbench.records import Record, Status

PROFILES = {"cluster": Cluster, "accelerator": Accelerator, "model": Model}


class Par(NamedTuple):
    """What an `Annotated` parameter of an experiment says about itself.

    Attributes:
        label: short text beside the widget.
        unit: SI unit shown after the label, "" for pure numbers and names.
        low, high: closed range of a number; the ends are valid.
        step: step of the slider; for a logarithmic one the step of the exponent.
        log: whether the slider is logarithmic.
        choices: allowed texts; with a tuple type any selection of them.
        profile: "cluster", "accelerator" or "model" where the text names such a profile (or a path, or `local`).
        trace: whether the text names a trace, or the file of one; empty for none.
        free: True where the paper does not fix the value, so that published marks stay comparable when it is changed.
        play: whether the slider gets a play button.
        status, source: where the default comes from.
    """

    label: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    step: float | None = None
    log: bool = False
    choices: tuple[str, ...] = ()
    profile: str = ""
    trace: bool = False
    free: bool = False
    play: bool = False
    status: Status = "chosen"
    source: str = ""


class Parameter(NamedTuple):
    """One parameter of an experiment: its name, type and default, with what its annotation says."""

    name: str
    kind: type
    many: bool
    default: Any
    about: Par

    def check(self, value: Any, experiment: str) -> Any:
        """The value in this parameter's own type, or a `UserError` that names all that matters."""
        where = f"{experiment}: parameter {self.name!r}"
        if self.many:
            items = value.split(",") if isinstance(value, str) else list(_iterable(value, where))
            if not items:
                raise UserError(
                    f"{where} is empty; give at least one of {', '.join(self.about.choices) or 'the values'}."
                )
            return tuple(self._one(item.strip() if isinstance(item, str) else item, where) for item in items)
        return self._one(value, where)

    def _one(self, value: Any, where: str) -> Any:
        if self.kind is bool:
            return _boolean(value, where)
        if self.kind is str:
            return self._text(value, where)
        return self._number(value, where)

    def _text(self, value: Any, where: str) -> str:
        if isinstance(value, Path):
            value = str(value)
        if not isinstance(value, str):
            if self.about.profile and isinstance(value, PROFILES[self.about.profile]):
                return value  # made in code
            raise UserError(f"{where} takes a text, got {_short(value)}; give {self._allowed()}.")
        if self.about.choices and value not in self.about.choices:
            raise UnknownName(f"choice for {where}", value, self.about.choices)
        return value

    def _number(self, value: Any, where: str) -> int | float:
        try:
            number = float(value if not isinstance(value, bool) else "a switch")
        except OverflowError:
            number = math.inf if value > 0 else -math.inf
        except (TypeError, ValueError):
            raise UserError(f"{where} takes a number, got {_short(value)}; give {self._allowed()}.") from None
        if math.isnan(number) or (self.kind is int and (math.isinf(number) or number != int(number))):
            wanted = "a whole number" if self.kind is int else "a number"
            raise UserError(f"{where} takes {wanted}, got {_short(value)}; give {self._allowed()}.")
        low, high = self.about.low, self.about.high
        if (low is not None and number < low) or (high is not None and number > high):
            raise UserError(f"{where} is out of range, got {_short(value)}; give {self._allowed()}.")
        return self.kind(number)

    def _allowed(self) -> str:
        about = self.about
        if about.choices:
            return f"one of {', '.join(about.choices)}"
        if about.trace:
            return "the name of a trace, the path of one, or an empty text for none"
        if about.profile:
            return f"the name of a {about.profile}, a path, 'local', or a {about.profile} made in code"
        if about.low is None and about.high is None:
            return "a whole number" if self.kind is int else "a number"
        return f"a value from {about.low:g} to {about.high:g}" + (f" {about.unit}" if about.unit else "")


def name_of(value: Any) -> str:
    """How a parameter's value reads in a text: a profile made in code by its name."""
    return ", ".join(map(name_of, value)) if isinstance(value, tuple) else str(getattr(value, "name", value))


def _short(value: Any) -> str:
    """A value as an error shows it, never longer than a line."""
    text = value.name if isinstance(value, Record) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def plain(value: Any) -> Any:
    """A parameter's value as JSON holds it: a profile made in code by its name."""
    return value if isinstance(value, int | float | str | tuple) else name_of(value)


def parameters_of(function: Callable) -> tuple[Parameter, ...]:
    """The keyword-only, annotated parameters of an experiment function, in the order of its signature."""
    hints = typing.get_type_hints(function, include_extras=True)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        kind, about = typing.get_args(hints[name])[:2]
        many = typing.get_origin(kind) is tuple
        if many:
            kind = typing.get_args(kind)[0]
        if kind not in (int, float, bool, str) or not isinstance(about, Par):
            raise TypeError(
                f"{function.__qualname__}: parameter {name!r} needs Annotated[int|float|bool|str, Par(...)]"
            )
        found.append(Parameter(name, kind, many, parameter.default, about))
    return tuple(found)


def bind(experiment: str, parameters: tuple[Parameter, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults overlaid with the given values, all checked."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in given:
        if name not in known:
            raise UnknownName(f"parameter of {experiment}", name, known)
    return {name: parameter.check(given.get(name, parameter.default), experiment) for name, parameter in known.items()}


def _iterable(value: Any, where: str):
    try:
        return iter(value)
    except TypeError:
        raise UserError(
            f"{where} takes several values, got {value!r}; give a list or a comma-separated text."
        ) from None


def _boolean(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    texts = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, str) and value.strip().lower() in texts:
        return texts[value.strip().lower()]
    raise UserError(f"{where} is a switch, got {value!r}; give true or false.")
