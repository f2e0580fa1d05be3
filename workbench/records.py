"""The base of all records, and numbers that remember where they come from."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

Status = Literal["published", "datasheet", "measured", "fitted", "inferred", "computed", "mentioned", "chosen", "user"]
"""Where a number comes from. *mentioned*: a source names it without saying that it was used (never a default);
*chosen*: a parameter of ours that no source gives; *user*: set by whoever ran the experiment."""


class Record(BaseModel):
    """Base of all records here: frozen, and closed to unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


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
