"""Checked numbers: what a user gives is refused in one sentence when it is not a finite number of the right sign."""

import math
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

from workbench.errors import InputError


def positive(value: float, name: str) -> float:
    """The number itself if it is finite and above zero, else an `InputError` that names it."""
    if not (math.isfinite(value) and value > 0):
        raise InputError(f"is {value!r}", "give a finite number above 0", field=name)
    return value


def not_negative(value: float, name: str) -> float:
    """The number itself if it is finite and not below zero, else an `InputError` that names it."""
    if not (math.isfinite(value) and value >= 0):
        raise InputError(f"is {value!r}", "give a finite number of 0 or more", field=name)
    return value


def _positive_field(value: float, info: ValidationInfo) -> float:
    return positive(value, info.field_name or "value")


def _not_negative_field(value: float, info: ValidationInfo) -> float:
    return not_negative(value, info.field_name or "value")


Positive = Annotated[float, AfterValidator(_positive_field)]
NotNegative = Annotated[float, AfterValidator(_not_negative_field)]
