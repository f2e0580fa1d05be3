"""How numbers with a source become table columns."""

from typing import Any

from workbench.records import Quantity, Record


def quantity_columns(field: str, record: Record, prefix: str = "") -> dict[str, Any]:
    """A number and, in the column beside it, its status and source; None where it is not known."""
    value: Quantity | None = getattr(record, field)
    return {
        f"{prefix}{field}": None if value is None else float(value),
        f"{prefix}{field}_source": None if value is None else f"{value.status}: {value.source}",
    }
