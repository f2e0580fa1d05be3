"""What an exercise is: numbers of the student's own, a question about them, and who computes the answer."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from workbench.errors import UserError
from workbench.records import shown

Rng = np.random.Generator


class Slip(NamedTuple):
    """A usual mistake: what it gives for the numbers of a question, and what to say to who gives that."""

    says: str
    value: Callable[..., float]


class ValueTask(NamedTuple):
    """An exercise that is answered by a number.

    Attributes:
        id, title: PAPER/word, and a heading.
        ask: the question, with the names of the numbers in braces.
        unit: of the answer, "" for pure numbers.
        draw: the student's numbers by name, from a generator of the student's own.
        answer: the workbench's answer to the numbers.
        hints: from the gentlest to the plainest.
        slips: usual mistakes.
        tolerance: relative.
        slack: absolute, for counts in which the neighbour is as good.
    """

    id: str
    title: str
    ask: str
    unit: str
    draw: Callable[[Rng], dict[str, Any]]
    answer: Callable[..., float]
    hints: tuple[str, ...]
    slips: tuple[Slip, ...] = ()
    tolerance: float = 0.01
    slack: float = 0.0


class FunctionTask(NamedTuple):
    """An exercise that is answered by a function of plain numbers and lists.

    Attributes:
        id, title, hints, tolerance: as for a number.
        ask: the question.
        name, arguments: of the function.
        cases: arguments of each call, from a generator of the student's own.
        answer: the workbench's answer to one case.
    """

    id: str
    title: str
    ask: str
    name: str
    arguments: tuple[str, ...]
    cases: Callable[[Rng], Sequence[tuple[Any, ...]]]
    answer: Callable[..., float]
    hints: tuple[str, ...]
    tolerance: float = 1e-6

    @property
    def signature(self) -> str:
        """As the student writes it."""
        return f"{self.name}({', '.join(self.arguments)})"


Task = ValueTask | FunctionTask


def student_name(student: str | int) -> str:
    """A student's name as numbers are drawn for it: case and spaces do not matter.

    >>> student_name("  Ada   LOVELACE ")
    'ada lovelace'
    """
    name = ""
    with suppress(ValueError):  # a number of thousands of digits, or half a letter, which no file can hold
        if isinstance(student, str | int) and not isinstance(student, bool):
            name = str(student).encode().decode()
    if not name.strip():
        raise UserError(f"student is a name or a number, got {shown(student)}; write student='Ada Lovelace', say.")
    return " ".join(name.split()).casefold()


def student_rng(task: str, student: str | int) -> Rng:
    """The generator of one student for one exercise: the same on every machine."""
    digest = hashlib.sha256(f"{task}|{student_name(student)}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def asked(task: Task, student: str | int) -> str:
    """The question with the student's numbers."""
    if isinstance(task, FunctionTask):
        case = ", ".join(map(repr, task.cases(student_rng(task.id, student))[0]))
        return f"{task.ask} Write {task.signature}; it will be called as {task.name}({case}), for example."
    return task.ask.format_map(_Read(task.draw(student_rng(task.id, student))))


class _Read(dict):
    """Numbers as a reader likes them: thousands in groups."""

    def __init__(self, numbers: Mapping[str, Any]):
        super().__init__({name: _read(value) for name, value in numbers.items()})


def _read(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(_read, value)) if isinstance(value, list | tuple) else str(value)


def pick(rng: Rng, *values: Any) -> Any:
    """One of some values."""
    return values[int(rng.integers(len(values)))]
