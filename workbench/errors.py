"""Errors that say in one sentence what is wrong and what to do about it.

`UserError` and its kin are for what the user can mend (exit code 2); everything else that we raise on purpose is a
`WorkbenchError` (exit code 1). The command line prints the message alone, so a message must stand by itself.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path


class WorkbenchError(Exception):
    """Something failed while running; the message is one sentence."""

    exit_code = 1


class UserError(WorkbenchError):
    """Something the user can mend: a name, a file, a parameter, a missing extra."""

    exit_code = 2


class UnknownName(UserError):
    """A name that is not in its table.

    Attributes:
        kind: what was looked up ("accelerator", "experiment", ...).
        name: the name that was asked for.
        near: up to three known names that look like it.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], hint: str = ""):
        name = name if isinstance(name, str) else repr(name)
        self.kind, self.name = kind, name
        names = sorted(known)
        folded = {known_name.casefold(): known_name for known_name in names}
        close = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.4)
        inside = [key for key in folded if name.casefold() in key] if name else []
        self.near = [folded[key] for key in dict.fromkeys(close + inside)][:3]
        if self.near:
            nearby = f"near names: {', '.join(self.near)}"
        else:
            nearby = f"known names: {', '.join(names[:8])}" + (", …" if len(names) > 8 else "")
        super().__init__(f"There is no {kind} named {name!r}; {nearby}." + (f" {hint}" if hint else ""))


class InputError(UserError):
    """A file, table or record that cannot be used as it stands.

    Attributes:
        file: the file at fault, or None for a value given in code.
        row: 1-based data row, the first below a header, or None.
        line: the line of a text file as an editor numbers it, where the row is none yet, or None.
        field: the column or key at fault, or None.
        remedy: what to change.
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        *,
        file: str | Path | None = None,
        row: int | None = None,
        line: int | None = None,
        field: str | None = None,
    ):
        self.problem, self.remedy, self.row, self.line, self.field = problem, remedy, row, line, field
        self.file = None if file is None else str(file)
        where = f"line {line}" if line else f"{'data row' if self.file else 'row'} {row}" if row else ""
        place = [part for part in (self.file, where, field and f"field {field!r}") if part]
        super().__init__((": ".join([", ".join(place), problem]) if place else problem) + f"; {remedy}.")


class MissingExtra(UserError):
    """An optional package is needed; the message holds the command that adds it."""

    def __init__(self, feature: str, package: str, extra: str):
        self.feature, self.package, self.extra = feature, package, extra
        super().__init__(f"{feature} needs {package}, which is not installed: {install_command(extra)}.")


class MissingData(UserError):
    """Measurements or traces that are not on this machine; the message says where they are looked for."""

    def __init__(self, what: str):
        super().__init__(
            f"{what} are not on this machine: set WORKBENCH_DATA to the folder that holds measured/ and traces/."
        )


def install_command(extra: str) -> str:
    """The shell command that adds an optional part of the workbench to this Python."""
    if extra == "torch":
        return (
            "pip install torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu"
            ' && pip install "workbench-llm[torch]"'
        )
    return f'pip install "workbench-llm[{extra}]"'
