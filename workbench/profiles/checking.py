"""Build a record from untrusted data, and say in one sentence what is wrong with it."""

import difflib
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from workbench.errors import InputError
from workbench.records import Record

Built = TypeVar("Built", bound=Record)


def build(
    kind: type[Built], data: dict[str, Any], *, file: str | Path | None = None, sources: dict[str, str] | None = None
) -> Built:
    """Validate a table into a record of the given kind.

    Parameters:
        kind: the record to build.
        data: field names and values, as a TOML file or keyword arguments give them.
        file: the file they come from, None for values given in code.
        sources: the file's [sources] table, short name to full text.

    Raises:
        InputError: the first field at fault, with file, field and remedy.
    """
    context = {"file": None if file is None else str(file), "sources": sources or {}}
    try:
        return kind.model_validate(data, context=context)
    except ValidationError as error:
        raise _sentence(kind, error, file) from None


def _sentence(kind: type[Record], error: ValidationError, file: str | Path | None) -> InputError:
    first = error.errors(include_url=False)[0]
    location = first["loc"]
    field = _path(location) or None
    reason = first["type"]
    context = first.get("ctx", {})
    given = f"{first['input']!r:.60}"
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
    return InputError(f"is {given}", message, file=file, field=field)


def _path(location: tuple[str | int, ...]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
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
