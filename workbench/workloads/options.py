"""How a trace file is to be read: which rows, how times and defects are treated, and what is too much."""

from collections.abc import Callable
from typing import Literal

from workbench.records import Asked, AtLeastOne, Positive, Record, ZeroOrMore

Unit = Literal["datetime", "s", "ms", "us", "ns"]
Target = Literal["request_id", "model", "arrival_s", "prompt_tokens", "output_tokens", "prefix_hashes", "priority"]


class Limits(Asked):
    """What a reader refuses to swallow.

    Attributes:
        rows: data rows read (the largest public trace has 27.3 million).
        line_bytes: bytes in one line of text.
        file_bytes: bytes of the file, after unpacking.
        array_bytes: bytes of a JSON array, which cannot be read in parts.
    """

    rows: ZeroOrMore = 50_000_000
    line_bytes: ZeroOrMore = 4 << 20
    file_bytes: ZeroOrMore = 8 << 30
    array_bytes: ZeroOrMore = 1 << 30


class ReadOptions(Record):
    """Everything `trace` can be told about a file; its docstring explains the fields one by one."""

    rows: AtLeastOne | tuple[ZeroOrMore, AtLeastOne] | None = None
    window: tuple[float, float] | None = None
    spread: bool | Positive = True
    seed: ZeroOrMore = 0
    zero_tokens: Literal["drop", "keep", "one", "refuse"] = "drop"
    bad_rows: Literal["refuse", "drop"] = "refuse"
    model: str | None = None
    columns: dict[Target, str] | None = None
    unit: Unit | None = None
    format: str | None = None
    log_type: str | None = None
    block_tokens: AtLeastOne | None = None
    count_tokens: Callable[[str], int] | None = None
    limits: Limits = Limits()

    @property
    def part(self) -> tuple[int, int | None]:
        """First row wanted, from 0, and the one behind the last; None for no end."""
        return (0, self.rows) if self.rows is None or isinstance(self.rows, int) else self.rows
