"""Is it right? A student's number, or what a student's function gave, against the workbench's own answer."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from workbench.records import shown
from workbench.teaching.answering import plain
from workbench.teaching.task import FunctionTask, Task, ValueTask, student_rng

Said = tuple[Any, str]
"""What a call gave, and why it gave nothing ("" where it did)."""


class Judged(NamedTuple):
    """Whether an answer is right, and one sentence about it."""

    right: bool
    says: str


def judge_value(task: ValueTask, student: str | int, given: Any) -> Judged:
    """Judge a number; a usual mistake is named."""
    if not is_number(given):
        return Judged(False, f"Not yet: a number is asked for, got {_short(given)}.")
    numbers = task.draw(student_rng(task.id, student))
    if _near(given, float(task.answer(**numbers)), task.tolerance, task.slack):
        return Judged(True, f"Right: {_short(given)}{' ' + task.unit if task.unit else ''}.")
    for slip in task.slips:
        if _near(given, float(slip.value(**numbers)), task.tolerance, 0.0):
            return Judged(False, f"Not yet: {slip.says}")
    side = "large" if given > task.answer(**numbers) else "small"
    return Judged(False, f"Not yet: {_short(given)} is too {side}.")


def judge_calls(task: FunctionTask, student: str | int, said: Sequence[Said]) -> Judged:
    """Judge what a function gave in each of the student's cases."""
    cases = cases_of(task, student)
    if len(said) != len(cases):
        return Judged(False, f"Not yet: {len(said)} of {len(cases)} calls ended.")
    wrong = []
    for case, (value, why) in zip(cases, said, strict=True):
        call = f"{task.name}({', '.join(map(repr, case))})"
        if why:
            wrong.append(f"{_cut(call)} failed: {_cut(why)}")
        elif not is_number(value) or not _near(value, float(task.answer(*case)), task.tolerance, 0.0):
            wrong.append(f"{_cut(call)} gave {_short(value)}")
    if not wrong:
        return Judged(True, f"Right in all {len(cases)} cases.")
    return Judged(False, f"Not yet: right in {len(cases) - len(wrong)} of {len(cases)} cases; {wrong[0]}.")


def cases_of(task: FunctionTask, student: str | int) -> list[tuple[Any, ...]]:
    """The arguments of each of the student's calls; new lists every time, for a function may change them."""
    return [tuple(case) for case in task.cases(student_rng(task.id, student))]


def call_here(task: FunctionTask, student: str | int, function: Callable) -> list[Said]:
    """Call a student's function in this process, as the student's own notebook does."""
    said: list[Said] = []
    for case in cases_of(task, student):
        try:
            said.append((plain(function(*case)), ""))
        except (Exception, SystemExit) as error:
            said.append((None, f"{type(error).__name__}: {error}"))
    return said


def judge(task: Task, student: str | int, given: Any) -> Judged:
    """Judge what a student gave in this process."""
    if isinstance(task, ValueTask):
        return judge_value(task, student, plain(given))
    if not callable(given):
        return Judged(False, f"Not yet: a function {task.signature} is asked for, got {_short(given)}.")
    return judge_calls(task, student, call_here(task, student, given))


def is_number(value: Any) -> bool:
    """Whether it is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _near(given: float, wanted: float, tolerance: float, slack: float) -> bool:
    return math.isclose(given, wanted, rel_tol=tolerance, abs_tol=max(slack, 1e-12))


def _short(value: Any) -> str:
    return f"{value:.6g}" if is_number(value) else shown(value)


def _cut(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."
