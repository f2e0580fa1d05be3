"""How a trace file is to be read: which rows, how times and defects are treated, and what is too much."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from workbench.errors import UserError
from workbench.records import Record

Unit = Literal["datetime", "s", "ms", "us", "ns"]
Target = Literal["request_id", "model", "arrival_s", "prompt_tokens", "output_tokens", "prefix_hashes"]
Count = Annotated[int, Field(ge=0)]


class Limits(Record):
    """What a reader refuses to swallow.

    Attributes:
        rows: data rows read (the largest public trace has 27.3 million).
        line_bytes: bytes in one line of text.
        file_bytes: bytes of the file, after unpacking.
        array_bytes: bytes of a JSON array, which cannot be read in parts.
    """

    rows: Count = 50_000_000
    line_bytes: Count = 4 << 20
    file_bytes: Count = 8 << 30
    array_bytes: Count = 1 << 30


class ReadOptions(Record):
    """Everything `trace` can be told about a file; its docstring explains the fields one by one."""

    rows: Annotated[int, Field(gt=0)] | tuple[Count, Annotated[int, Field(gt=0)]] | None = None
    window: tuple[float, float] | None = None
    spread: bool | Annotated[float, Field(gt=0, allow_inf_nan=False)] = True
    seed: Count = 0
    zero_tokens: Literal["drop", "keep", "one", "refuse"] = "drop"
    bad_rows: Literal["refuse", "drop"] = "refuse"
    model: str | None = None
    columns: dict[Target, str] | None = None
    unit: Unit | None = None
    format: str | None = None
    log_type: str | None = None
    block_tokens: Annotated[int, Field(gt=0)] | None = None
    count_tokens: Callable[[str], int] | None = None
    limits: Limits = Limits()


def checked(kind: type[Record], given: dict[str, Any], what: str) -> Any:
    """Build a record, turning the first thing pydantic dislikes into one sentence for the user."""
    try:
        return kind(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][:1]) or what
        if first["type"] == "extra_forbidden":
            names = ", ".join(kind.model_fields)
            raise UserError(f"{what} has no option {name!r}; its options are {names}.") from None
        raise UserError(
            f"{what}: {name}={given.get(name)!r} cannot be used ({first['msg'][0].lower()}{first['msg'][1:]})."
        ) from None
