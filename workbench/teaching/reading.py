"""What a student's notebook answers, read from its text; nothing of it is run."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workbench.errors import InputError
from workbench.teaching.arithmetic import NotPlain, value_of
from workbench.teaching.exercise import ANSWER_TYPE

LARGEST_BYTES = 20_000_000
"""A notebook is never larger."""

PLACEHOLDER = "your name"
"""The name that stands in the notebooks until a student puts another."""

REMEDY = "save the notebook again, from JupyterLab"


class Given(NamedTuple):
    """What a notebook gives for one exercise.

    Attributes:
        student: whose numbers it was asked for; "" where none is named, or by what only a run would tell.
        value: the number; None where none was given.
        function: name of the function that was given instead, "" for none.
        how: "read" from the text, "kept" beside an output of an earlier run, "unread" where it is neither; "" where
            nothing was given.
    """

    student: str
    value: Any = None
    function: str = ""
    how: str = ""


class Answers(NamedTuple):
    """All that a notebook answers.

    Attributes:
        given: by exercise.
        source: imports, constants and functions of the notebook, for calling one of these.
        broken: 1-based numbers of code cells that are no Python.
    """

    given: dict[str, Given]
    source: str
    broken: tuple[int, ...]


def read_answers(path: Path) -> Answers:
    """Read a notebook.

    Raises:
        InputError: it is no notebook.
    """
    cells = _code_cells(path)
    trees: list[ast.Module] = []
    broken = []
    for number, cell in cells:
        try:
            trees.append(ast.parse(_python(cell)))
        except (SyntaxError, ValueError, RecursionError):
            broken.append(number)
    functions = {name for tree in trees for node in tree.body if (name := _function_name(node))}
    lambdas: list[ast.Lambda] = []
    known: dict[str, Any] = {}
    exercises: dict[str, tuple[str, str]] = {}
    given: dict[str, Given] = {}
    for tree in trees:
        for statement in tree.body:
            for id, student, inside in _checks(statement, exercises, known):
                if isinstance(inside, ast.Lambda):
                    lambdas.append(inside)
                    inside = ast.Name(_lambda_name(len(lambdas)))
                    functions.add(inside.id)
                given[id] = _given(student, inside, known, functions)
            _remember(statement, exercises, known)
    for id, kept in _kept(cells).items():
        if id not in given or given[id].how in ("", "unread") or not given[id].student:
            given[id] = kept
    return Answers(given, _source(trees, known, lambdas), tuple(broken))


def _code_cells(path: Path) -> list[tuple[int, dict[str, Any]]]:
    if not path.is_file():
        raise InputError("is no file, or a link to none", "put the notebook itself there", file=path)
    if path.stat().st_size > LARGEST_BYTES:
        raise InputError("is larger than 20 MB", "clear its outputs and save it again", file=path)
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InputError("is no notebook (it cannot be read as JSON)", REMEDY, file=path) from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise InputError("is no notebook of version 4 (it has no list of cells)", REMEDY, file=path)
    return [(number, cell) for number, cell in enumerate(cells, start=1) if cell.get("cell_type") == "code"]


def _python(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    text = "".join(map(str, source)) if isinstance(source, list) else str(source)
    return "\n".join("" if line.lstrip().startswith(("%", "!", "?")) else line for line in text.splitlines())


def _checks(
    statement: ast.stmt, exercises: dict[str, tuple[str, str]], known: dict[str, Any]
) -> Iterator[tuple[str, str, ast.expr | None]]:
    """Each `.check(...)` of an exercise in a statement: the exercise, the student, what is in the brackets."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "check":
            asked = node.func.value
            found = exercises.get(asked.id) if isinstance(asked, ast.Name) else _exercise(asked, known)
            if found:
                inside = node.args[0] if node.args else next((item.value for item in node.keywords), None)
                yield *found, inside


def _exercise(node: ast.expr, known: dict[str, Any]) -> tuple[str, str] | None:
    """The exercise of a call of `wb.exercise`, and the student, "" where none can be read; None for anything else."""
    if not isinstance(node, ast.Call):
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name != "exercise":
        return None
    words = {item.arg: item.value for item in node.keywords}
    parts = [*node.args, *([words["id"]] if "id" in words else []), *([words["student"]] if "student" in words else [])]
    read = []
    for part in parts:
        try:
            read.append(value_of(part, known))
        except NotPlain:
            read.append(None)
    id, student, *_ = *read, None, None
    return (id, "" if student is None else str(student)) if isinstance(id, str) else None


def _remember(statement: ast.stmt, exercises: dict[str, tuple[str, str]], known: dict[str, Any]) -> None:
    """Names that a statement gives to an exercise or to a plain value; a name given anything else is forgotten."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            exercises.pop(name, None)
            known.pop(name, None)
            if found := _exercise(value, known):
                exercises[name] = found
                return
            try:
                known[name] = value_of(value, known)
            except NotPlain:
                return


def _given(student: str, inside: ast.expr | None, known: dict[str, Any], functions: set[str]) -> Given:
    if inside is None:
        return Given(student)
    if isinstance(inside, ast.Name) and inside.id in functions:
        return Given(student, function=inside.id, how="read")
    try:
        value = value_of(inside, known)
    except NotPlain:
        return Given(student, how="unread")
    return Given(student, value, how="read" if value is not None else "")


def _kept(cells: list[tuple[int, dict[str, Any]]]) -> dict[str, Given]:
    """Numbers that checks of an earlier run left beside their outputs."""
    found = {}
    for _, cell in cells:
        outputs = cell.get("outputs")
        for output in outputs if isinstance(outputs, list) else []:
            data = output.get("data") if isinstance(output, dict) else None
            kept = data.get(ANSWER_TYPE) if isinstance(data, dict) else None
            if isinstance(kept, dict) and isinstance(kept.get("given"), int | float):
                found[str(kept.get("exercise"))] = Given(str(kept.get("student")), kept["given"], how="kept")
    return found


def _function_name(statement: ast.stmt) -> str:
    """The name that a statement gives to a function, "" for any other statement."""
    match statement:
        case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
            return name
    return ""


def _lambda_name(number: int) -> str:
    return f"given_{number}"


def _source(trees: list[ast.Module], known: dict[str, Any], lambdas: list[ast.Lambda]) -> str:
    """Imports, plain constants and functions: what a function of the notebook may need."""
    imports = [node for tree in trees for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    functions = [ast.unparse(node) for tree in trees for node in tree.body if _function_name(node)]
    functions += [f"{_lambda_name(number)} = {ast.unparse(node)}" for number, node in enumerate(lambdas, start=1)]
    constants = [f"{name} = {value!r}" for name, value in known.items()]
    return "\n".join([*map(ast.unparse, imports), *constants, *functions]) + "\n"
