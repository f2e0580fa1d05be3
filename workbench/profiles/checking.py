"""Build a record from untrusted data, and say in one sentence what is wrong with it."""

from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from workbench.records import Record, refusal

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
        raise refusal(kind, error, file=file) from None
