"""The base of all records, numbers that remember where they come from, and checks of what users give."""

import difflib
import functools
import inspect
import math
import os
from collections.abc import Callable
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from workbench.errors import InputError

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
LARGEST = 2**63 - 1
P = ParamSpec("P")
T = TypeVar("T")
AtLeastOne = Annotated[int, Field(ge=1, le=LARGEST)]
ZeroOrMore = Annotated[int, Field(ge=0, le=LARGEST)]


def _lower_first(bounds: tuple[float, float]) -> tuple[float, float]:
    lower, upper = bounds
    if lower > upper:
        raise ValueError(f"has {lower:g} above {upper:g}; give the lower bound first")
    return bounds


LowerAndUpper = Annotated[tuple[Positive, Positive], AfterValidator(_lower_first)]

Status = Literal["published", "datasheet", "measured", "fitted", "inferred", "computed", "mentioned", "chosen", "user"]
"""Where a number comes from. *mentioned*: a source names it without saying that it was used (never a default);
*chosen*: a parameter of ours that no source gives; *user*: set by whoever ran the experiment."""


class Record(BaseModel):
    """Base of all records here: frozen, and closed to unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Asked(Record):
    """Base of records that users fill in: a value that cannot be used is one sentence, not a page.

    >>> class Speed(Asked):
    ...     metres_per_s: Positive
    >>> Speed(metres_per_s=-1)
    Traceback (most recent call last):
    workbench.errors.InputError: field 'Speed.metres_per_s': is -1; input should be greater than 0.
    """

    def __init__(self, *unnamed: Any, **given: Any):
        if unnamed:
            fields = ", ".join(type(self).model_fields)
            raise InputError(f"{shown(unnamed[0])} has no name", f"name the fields of {type(self).__name__}: {fields}")
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise refusal(type(self), error, owner=type(self).__name__) from None


class Quantity(Record):
    """A number with its SI unit, how it is known and by whom.

    >>> nic = Quantity(value=12.5e9, unit="bytes/s", status="published", source="BlitzScale Table 1")
    >>> float(nic)
    12500000000.0
    """

    value: float
    unit: str
    status: Status
    source: str

    def __float__(self) -> float:
        return float(self.value)


class Source(Record):
    """Where one number that a result shows or uses comes from."""

    quantity: str
    value: str
    unit: str = ""
    status: Status
    source: str


def refusal(
    kind: type[Record], error: ValidationError, *, file: str | Path | None = None, owner: str = ""
) -> InputError:
    """What is wrong with the values of a record, in one sentence: the first field at fault, and the remedy.

    Parameters:
        kind: the record that was to be built.
        error: what pydantic says.
        file: where the values stand, None for values given in code.
        owner: put before the field's name, where the field alone would not tell whose it is.
    """
    # A misspelt name comes first: a field that is missing is then usually the same one.
    first = min(error.errors(include_url=False), key=lambda entry: entry["type"] != "extra_forbidden")
    location, reason, context = first["loc"], first["type"], first.get("ctx", {})
    field = _path((owner, *location) if owner else location) or None
    if reason == "extra_forbidden":
        known = _fields_at(kind, location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, n=3)
        what = f"use {' or '.join(near)}" if near else f"known fields: {', '.join(known)}"
        return InputError("is not a known field", f"remove it, or {what}", file=file, field=field)
    if reason == "missing":
        return InputError("is missing", f"add {location[-1]}", file=file, field=field)
    if "remedy" in context:
        return InputError(first["msg"], context["remedy"], file=file, field=field)
    if reason == "value_error":
        problem, _, remedy = str(context["error"]).partition("; ")
        return InputError(problem, remedy or "correct it", file=file, field=field)
    message = first["msg"][0].lower() + first["msg"][1:]
    return InputError(f"is {shown(first['input'])}", message, file=file, field=field)


def positive(value: float, name: str) -> float:
    """A number that a user gave, as a float, if it is finite and above 0; else an `InputError` that names it."""
    return _number(value, name, lambda number: number > 0, "give a finite number above 0")


def not_negative(value: float, name: str) -> float:
    """A number that a user gave, as a float, if it is finite and 0 or more; else an `InputError` that names it."""
    return _number(value, name, lambda number: number >= 0, "give a finite number of 0 or more")


def share(value: float, name: str) -> float:
    """A share that a user gave, from 0 to 1; else an `InputError` that names it."""
    return _number(value, name, lambda number: 0 <= number <= 1, "give a share from 0 to 1")


def whole(value: int, name: str, least: int = 0, most: int = LARGEST) -> int:
    """A whole number that a user gave, as an int, if it lies within bounds; else an `InputError` that names it."""
    right = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    if not right or not least <= value <= most:
        wanted = f"of {least:,} or more" if most == LARGEST else f"from {least:,} to {most:,}"
        raise InputError(f"is {shown(value)}", f"give a whole number {wanted}", field=name)
    return int(value)


def _number(value: Any, name: str, right: Callable[[float], bool], remedy: str) -> float:
    number = math.nan
    if not isinstance(value, bool | str | bytes) and getattr(value, "shape", ()) == ():
        with suppress(TypeError, ValueError, OverflowError):
            number = float(value)
    if not (math.isfinite(number) and right(number)):
        raise InputError(f"is {shown(value)}", remedy, field=name)
    return number


def of_type(value: Any, kind: type[T], name: str) -> T:
    """An object that a user gave, if it is of this type; else an `InputError` that names it."""
    if not isinstance(value, kind):
        raise InputError(f"is {shown(value)}", f"give an object of type {kind.__name__}", field=name)
    return value


def takes_records(function: Callable[P, T]) -> Callable[P, T]:
    """The same function, but an argument that is not the record its annotation names is an `InputError`.

    Records are pydantic models and named tuples; None passes where the annotation allows it.
    """
    checks = []
    for place, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        asked = parameter.annotation
        options = get_args(asked) if isinstance(asked, UnionType) else (asked,)
        records = [kind for kind in options if _is_record(kind)]
        if records and all(kind is type(None) for kind in options if kind not in records):
            checks.append((place, name, records[0], len(options) > 1))

    @functools.wraps(function)
    def checked(*unnamed: P.args, **given: P.kwargs) -> T:
        for place, name, kind, optional in checks:
            if place < len(unnamed):
                value = unnamed[place]
            elif name in given:
                value = given[name]
            else:
                continue
            if type(value) is not kind and not (optional and value is None):
                of_type(value, kind, name)
        return function(*unnamed, **given)

    return checked


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and (issubclass(kind, BaseModel) or hasattr(kind, "_fields"))


_LONGEST_NAME, _LONGEST_PATH = 255, 4000
"""Bytes of a file's name, and about those of a path, that file systems take."""


def given_path(value: str | Path, name: str) -> Path:
    """The path of a file or folder that a user gave as text or `Path`; else an `InputError` that names it."""
    if not isinstance(value, str | Path) or "\0" in str(value):
        raise InputError(f"is {shown(value)}, which is not a path", "give that of a file or folder", field=name)
    path = Path(value)
    if len(os.fsencode(path)) > _LONGEST_PATH or any(len(os.fsencode(part)) > _LONGEST_NAME for part in path.parts):
        raise InputError(f"is {shown(str(value))}, which is too long for a path", "give a shorter one", field=name)
    return path


def check_watching(progress: Any, stop: Any = None) -> None:
    """What a user gave to watch long work: a function that is told how far it is, an event that ends it, or None.

    Raises:
        InputError: it cannot be called, or cannot be set.
    """
    if progress is not None and not callable(progress):
        raise InputError(f"is {shown(progress)}", "give a function, or leave it out", field="progress")
    if stop is not None and not callable(getattr(stop, "is_set", None)):
        raise InputError(f"is {shown(stop)}", "give a threading.Event, or leave it out", field="stop")


def shown(value: Any) -> str:
    """A value as it can stand in a sentence: on one line, and not too long.

    >>> shown(10**70)
    '100000000000000000000000000000000000000000000000000000000...'
    """
    value = value.item() if getattr(value, "shape", None) == () else value  # a number, not how numpy writes it
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # Python writes out no number of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."


def _path(location: tuple[str | int, ...]) -> str:
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "").isalnum() and part not in ("bool", "float", "int", "str"):  # else a kind of union
            text += f".{part}"
    return text.removeprefix(".")


def _fields_at(kind: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    for part in location:
        if isinstance(part, str) and part in kind.model_fields:
            kind = _record_in(kind.model_fields[part].annotation) or kind
    return list(kind.model_fields)


def _record_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _record_in(part))), None)
