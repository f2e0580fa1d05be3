"""Field types for numbers with a unit, a status and a source, and the list of all sources inside a record."""

import math
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, Strict, ValidationInfo
from pydantic_core import PydanticCustomError

from workbench.errors import UnknownName
from workbench.records import Quantity, Record, Source

_SUFFIXES = (
    ("flops_per_s", "flop/s"),
    ("bytes_per_s", "bytes/s"),
    ("tokens_per_s", "tokens/s"),
    ("_per_s", "1/s"),
    ("fraction", "1"),
    ("bytes", "bytes"),
    ("parameters", "1"),
    ("_s", "s"),
)


def unit_of(name: str) -> str | None:
    """The SI unit that a quantity's own name states, or None where it states none.

    >>> unit_of("memory_bytes_per_s"), unit_of("kernel_s"), unit_of("list_price")
    ('bytes/s', 's', None)
    """
    return next((unit for suffix, unit in _SUFFIXES if name.endswith(suffix)), None)


def quantity_from(value: Any, unit: str | None, info: ValidationInfo, zero_allowed: bool = False) -> Any:
    """Turn a number, or a table {value, status, source}, into what `Quantity` validates; refuse the rest in words.

    A bare number is the user's own: its status is *user* and its source the file it stands in. A `source` that is a key
    of the file's [sources] table stands for the text there.
    """
    context = info.context or {}
    if isinstance(value, Quantity):
        if unit is not None and value.unit != unit:
            raise PydanticCustomError("unit", "is in {got}, not in {unit}", {"got": value.unit, "unit": unit})
        _refuse_bad_number(value.value, zero_allowed)
        return value
    if not isinstance(value, dict):
        _refuse_bad_number(value, zero_allowed)
        if unit is None:
            raise PydanticCustomError(
                "unit", "has no unit", {"remedy": "write it as { value, unit, status, source } with its SI unit"}
            )
        return {"value": value, "unit": unit, "status": "user", "source": context.get("file") or "given in code"}
    if "value" not in value:
        raise PydanticCustomError("value", "has no 'value'", {"remedy": "add value = <number>"})
    _refuse_bad_number(value["value"], zero_allowed)
    given = value.get("unit", unit)
    if given is None or (unit is not None and given != unit):
        raise PydanticCustomError(
            "unit", "has the unit {got}", {"got": repr(given), "remedy": f"give the number in {unit or 'an SI unit'}"}
        )
    source = value.get("source")
    sources = context.get("sources", {})
    return {**value, "unit": given, "source": sources.get(source, source) if isinstance(source, str) else source}


def _refuse_bad_number(value: Any, zero_allowed: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise PydanticCustomError(
            "number", "is {got}, not a number", {"got": f"{value!r:.60}", "remedy": "write a number in SI units"}
        )
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero_allowed):
        bound = "0 or more" if zero_allowed else "more than 0"
        raise PydanticCustomError(
            "number", "is {got}", {"got": f"{value:g}", "remedy": f"it must be finite and {bound}"}
        )


def _typed(unit: str, zero_allowed: bool = False):
    def convert(value: Any, info: ValidationInfo) -> Any:
        return quantity_from(value, unit, info, zero_allowed)

    return Annotated[Quantity, BeforeValidator(convert)]


BytesPerSecond = _typed("bytes/s")
FlopsPerSecond = _typed("flop/s")
Bytes = _typed("bytes")
Seconds = _typed("s", zero_allowed=True)
Number = _typed("1")
Slope = _typed("1", zero_allowed=True)
Count = Annotated[int, Strict(), Field(ge=1)]
ZeroOrMore = Annotated[int, Strict(), Field(ge=0)]
Flag = Annotated[bool, Strict()]


def _named(value: Any, info: ValidationInfo) -> Any:
    return quantity_from(value, unit_of(info.data.get("quantity", "")), info)


class Alternate(Record):
    """A number that differs from the default: what one paper, artifact or data sheet says instead.

    Attributes:
        preset: whose number it is ("blitzscale", "server-chains-artifact", ...).
        quantity: which quantity it would replace, by field name, or what it is called where there is none.
        value: the number with unit, status and source.
    """

    preset: str
    quantity: str
    value: Annotated[Quantity, BeforeValidator(_named)]


def alternates_from(table: Any) -> Any:
    """Turn {preset: {quantity: number}}, as a file has it, into the rows of a record; leave anything else alone."""
    if not isinstance(table, dict):
        return table
    rows = []
    for preset, entries in table.items():
        if not isinstance(entries, dict):
            raise PydanticCustomError(
                "alternates", "holds {preset} outside a table", {"preset": preset, "remedy": "write [alternates.NAME]"}
            )
        rows += [{"preset": preset, "quantity": quantity, "value": value} for quantity, value in entries.items()]
    return tuple(rows)


Alternates = Annotated[tuple[Alternate, ...], BeforeValidator(alternates_from)]


def alternate_value(owner: str, rows: tuple[Alternate, ...], preset: str, quantity: str) -> Quantity:
    """The one alternate of that preset and quantity; `owner` is named when there is none."""
    for row in rows:
        if row.preset == preset and row.quantity == quantity:
            return row.value
    known = {f"{row.preset}:{row.quantity}" for row in rows}
    raise UnknownName(f"alternate number of {owner}", f"{preset}:{quantity}", known)


def sources_of(record: Record, alternates: bool = False, prefix: str = "") -> list[Source]:
    """The numbers inside a record with where they come from, depth first, named by path ("nominal.flops_per_s").

    Parameters:
        record: any record.
        alternates: whether to list what single papers say instead as well.
        prefix: put before every path.
    """
    found: list[Source] = []
    for name in type(record).model_fields:
        value = getattr(record, name)
        for index, item in enumerate(value if isinstance(value, tuple) else (value,)):
            path = f"{prefix}{name}[{index}]" if isinstance(value, tuple) else f"{prefix}{name}"
            if isinstance(item, Alternate):
                if alternates:
                    found.append(_source(f"{prefix}{name}.{item.preset}.{item.quantity}", item.value))
            elif isinstance(item, Quantity):
                found.append(_source(path, item))
            elif isinstance(item, Source):
                found.append(item)
            elif isinstance(item, Record):
                found += sources_of(item, alternates, f"{path}.")
    return found


def _source(path: str, value: Quantity) -> Source:
    return Source(quantity=path, value=f"{value.value:.15g}", unit=value.unit, status=value.status, source=value.source)
