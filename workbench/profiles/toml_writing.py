"""Write plain tables as TOML (the standard library only reads it)."""

import json
import re
from typing import Any

from workbench.errors import WorkbenchError

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(tables: dict[str, Any]) -> str:
    """TOML text of nested tables; tables at the first level stand on their own, deeper ones inline.

    Parameters:
        tables: strings, booleans, numbers, lists and tables; None is left out.

    >>> print(toml_text({"local": {"name": "a", "rate": {"value": 1.5, "unit": "s"}}}))
    [local]
    name = "a"
    rate = { value = 1.5, unit = "s" }
    <BLANKLINE>
    """
    lines: list[str] = []
    for name, table in tables.items():
        rows = table if isinstance(table, list) else [table]
        heading = f"[[{_key(name)}]]" if isinstance(table, list) else f"[{_key(name)}]"
        for row in rows:
            if not isinstance(row, dict):
                raise WorkbenchError(f"Only tables can be written at the first level of a TOML file, not {name!r}.")
            lines.append(heading)
            lines += [f"{_key(key)} = {_value(value)}" for key, value in row.items() if value is not None]
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    # A JSON string is a TOML basic string but for DEL, which JSON leaves bare and TOML forbids.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        inside = ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
        return f"{{ {inside} }}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    raise WorkbenchError(f"{type(value).__name__} cannot be written as TOML.")
