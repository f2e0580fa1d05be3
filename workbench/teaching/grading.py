"""A folder of students' notebooks as one table of marks."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from workbench.errors import InputError, UserError
from workbench.records import given_path, shown
from workbench.teaching.calling import call_apart
from workbench.teaching.judging import Judged, cases_of, judge_calls, judge_value
from workbench.teaching.reading import PLACEHOLDER, Answers, Given, read_answers
from workbench.teaching.task import FunctionTask, Task, ValueTask
from workbench.teaching.tasks import TASKS

COLUMNS = ("file", "student", "exercise", "mark", "given", "remark")
MARKS = ("right", "wrong", "missing", "unreadable")


class Graded(NamedTuple):
    """The marks of a folder.

    Attributes:
        table: one row for every exercise of a notebook: file, student, exercise, mark (of `MARKS`), given, remark.
        broken: file -> what is wrong with it, in one sentence.
    """

    table: pl.DataFrame
    broken: Mapping[str, str]


def grade_folder(folder: str | Path, progress: Callable[[str], object] | None = None) -> Graded:
    """Grade every notebook below a folder against the numbers of the student it names.

    Numbers are read from the text of a notebook, or from what its last run left beside a check; no notebook is run.
    A function that was given to a check is called, in a process of its own and with a time limit.

    Parameters:
        folder: with notebooks, in folders below it too.
        progress: told which notebook it is at.

    Raises:
        UserError: no such folder, or no notebook in it.
    """
    folder = given_path(folder, "folder")
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; name the one that holds the students' notebooks.")
    paths = sorted(path for path in folder.rglob("*.ipynb") if not _hidden(path.relative_to(folder)))
    if not paths:
        raise UserError(f"{folder} holds no notebooks (*.ipynb); name the folder that holds the students' own.")
    rows: list[dict[str, str]] = []
    broken = {}
    for path in paths:
        name = str(path.relative_to(folder))
        if progress:
            progress(name)
        try:
            rows += _rows(name, path)
        except (InputError, OSError) as error:
            broken[name] = str(error)
            rows.append(_row(name, "", "", "unreadable", "", str(error)))
    return Graded(pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String)), broken)


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _rows(name: str, path: Path) -> list[dict[str, str]]:
    answers = read_answers(path)
    known = {id: given for id, given in answers.given.items() if id in TASKS}
    if not known:
        where = f" and its code cell {answers.broken[0]} is no Python" if answers.broken else ""
        what = "" if not answers.given else f" that there is (it checks {shown(next(iter(answers.given)))})"
        raise InputError(f"holds no check of an exercise{what}{where}", "put the exercise cells back", file=path)
    papers = {id.split("/")[0] for id in known}
    student = next((given.student for given in known.values() if given.student.strip()), "")
    return [
        _graded(name, student, task, known.get(id), answers) for id, task in TASKS.items() if id.split("/")[0] in papers
    ]


def _graded(name: str, student: str, task: Task, given: Given | None, answers: Answers) -> dict[str, str]:
    if given is None or given.how in ("", "unread"):
        why = "nothing was given"
        if given is not None and given.how == "unread":
            why = "what was given is no plain number or function, and no output of a run is saved beside it"
        cells = f"; cell {answers.broken[0]} is no Python" if answers.broken else ""
        return _row(name, given.student if given else student, task.id, "missing", "", f"{why}{cells}")
    if not given.student.strip():
        why = "no student is named, so the numbers are nobody's; put the name itself behind student="
        return _row(name, student, task.id, "missing", _text(given), why)
    if " ".join(given.student.split()).casefold() == PLACEHOLDER:
        why = f"the student is still {PLACEHOLDER!r}, so the numbers are nobody's"
        return _row(name, given.student, task.id, "missing", _text(given), why)
    judged = _judged(task, given, answers)
    remark = judged.says + (" (From the notebook's last run.)" if given.how == "kept" else "")
    return _row(name, given.student, task.id, "right" if judged.right else "wrong", _text(given), remark)


def _judged(task: Task, given: Given, answers: Answers) -> Judged:
    try:
        if isinstance(task, ValueTask):
            return judge_value(task, given.student, f"function {given.function}" if given.function else given.value)
        if not given.function:
            return Judged(False, f"Not yet: a function {task.signature} is asked for.")
        return _called(task, given, answers.source)
    except UserError as error:  # a name that is none
        return Judged(False, str(error))


def _called(task: FunctionTask, given: Given, source: str) -> Judged:
    said = call_apart(source, given.function, cases_of(task, given.student))
    return judge_calls(task, given.student, said)


def _text(given: Given) -> str:
    return f"{given.function}()" if given.function else str(given.value)


def _row(file: str, student: str, exercise: str, mark: str, given: str, remark: str) -> dict[str, Any]:
    values = (file, student, exercise, mark, given, remark)
    return {name: _harmless(value) for name, value in zip(COLUMNS, values, strict=True)}


def _harmless(text: str) -> str:
    """A text that a file can hold and no spreadsheet takes for a formula; numbers stay numbers."""
    text = text.encode(errors="replace").decode()
    try:
        float(text)
    except ValueError:
        return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
    return text
