"""Records that users fill in: a value that cannot be used is one sentence, not a page."""

from typing import Annotated, Any

from pydantic import Field, ValidationError

from workbench.errors import UserError
from workbench.records import Record

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
AtLeastOne = Annotated[int, Field(gt=0)]


class Asked(Record):
    """Base of such records.

    >>> from workbench.workloads.options import Limits
    >>> Limits(rows=-1)
    Traceback (most recent call last):
    workbench.errors.UserError: Limits: rows=-1 cannot be used (input should be greater than or equal to 0).
    """

    def __init__(self, **given: Any):
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise UserError(_sentence(type(self), given, error)) from None


def _sentence(kind: type[Record], given: dict[str, Any], error: ValidationError) -> str:
    first = min(error.errors(), key=lambda entry: entry["type"] != "extra_forbidden")  # a misspelt name comes first
    field = str(first["loc"][0]) if first["loc"] else kind.__name__
    if first["type"] == "extra_forbidden":
        return f"{kind.__name__} has no field {field!r}; its fields are {', '.join(kind.model_fields)}."
    if first["type"] == "missing":
        return f"{kind.__name__} needs {field}."
    value = repr(given.get(field))
    shown = value if len(value) <= 60 else value[:57] + "..."
    reason = first["msg"].removeprefix("Value error, ")
    return f"{kind.__name__}: {field}={shown} cannot be used ({reason[0].lower()}{reason[1:]})."
