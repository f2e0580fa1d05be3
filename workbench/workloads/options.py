"""How a trace file is to be read: which rows, how times and defects are treated, and what is too much."""

from collections.abc import Callable
from typing import Literal

from workbench.workloads.asked import Asked, AtLeastOne, Count, Positive

Unit = Literal["datetime", "s", "ms", "us", "ns"]
Target = Literal["request_id", "model", "arrival_s", "prompt_tokens", "output_tokens", "prefix_hashes"]


class Limits(Asked):
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


class ReadOptions(Asked):
    """Everything `trace` can be told about a file; its docstring explains the fields one by one."""

    rows: AtLeastOne | tuple[Count, AtLeastOne] | None = None
    window: tuple[float, float] | None = None
    spread: bool | Positive = True
    seed: Count = 0
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
