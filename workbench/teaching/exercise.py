"""The handle that a notebook holds: a question with the student's own numbers, hints, and a check."""

import html
import re
from typing import Any, NamedTuple

from workbench.errors import UnknownName
from workbench.teaching.answering import plain
from workbench.teaching.judging import is_number, judge
from workbench.teaching.task import FunctionTask, Task, asked, student_name

ANSWER_TYPE = "application/vnd.workbench.answer+json"
"""Beside what a check shows, a notebook keeps what was given, so that it can be graded without being run."""


class Hint(str):
    """A hint; a notebook shows it as text, not as a string in quotes."""

    def _repr_html_(self) -> str:
        return f"<p>{_markup(self)}</p>"


class Mark(NamedTuple):
    """What a check said.

    Attributes:
        exercise, student: what was asked, and whom.
        question: with the student's numbers.
        given: the number; None for a function, or where nothing was given.
        right: whether it is the answer.
        says: one sentence.
    """

    exercise: str
    student: str
    question: str
    given: float | None
    right: bool
    says: str

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        colour = "#2ca58d" if self.right else "#8c8c8c"
        shown = (
            f'<p style="margin:4px 0">{_markup(self.question)}</p><p role="status" style="margin:4px 0;'
            f'border-left:4px solid {colour};padding:4px 10px">{html.escape(self.says)}</p>'
        )
        kept = {"exercise": self.exercise, "student": self.student, "given": self.given}
        return {"text/html": shown, "text/plain": f"{self.question}\n{self.says}", ANSWER_TYPE: kept}


class Exercise:
    """One exercise for one student; see `workbench.exercise`."""

    def __init__(self, task: Task, student: str | int):
        self._task, self._student = task, student
        student_name(student)
        self._hints = 0
        self.id, self.title = task.id, task.title
        self.question = f"{task.title} {asked(task, student)}"

    def check(self, given: Any = None) -> Mark:
        """Is it right?

        Parameters:
            given: your number, or your function; with None the question alone is shown.
        """
        if given is None:
            what = "function" if isinstance(self._task, FunctionTask) else "number"
            right, says = False, f"Not answered yet: put your {what} between the brackets of check(). hint() helps."
        else:
            right, says = judge(self._task, self._student, given)
        number = plain(given)
        kept = number if is_number(number) else None
        return Mark(self.id, str(self._student), self.question, kept, right, says)

    def hint(self) -> Hint:
        """The next hint; the last one again when there are no more."""
        self._hints = min(self._hints + 1, len(self._task.hints))
        return Hint(f"Hint {self._hints} of {len(self._task.hints)}: {self._task.hints[self._hints - 1]}")

    def __repr__(self) -> str:
        return f"<Exercise {self.id} for {self._student}: {self.question}>"

    def _repr_html_(self) -> str:
        return f"<p>{_markup(self.question)}</p>"


def _markup(text: str) -> str:
    """A text as HTML, what stands between backquotes as code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", html.escape(text))


def exercise(id: str, student: str | int) -> Exercise:
    """An exercise with numbers of the student's own; `check` takes the student's number or function.

    Parameters:
        id: PAPER/word.
        student: a name or a number. The numbers follow from it; case and spaces do not matter.

    Raises:
        UnknownName: there is no such exercise. UserError: no name was given.

    >>> print(exercise("aegaeon/active-models", student="Ada").hint())
    Hint 1 of 3: A model is active while it has a request in flight. How likely is it that one has none?
    """
    from workbench.teaching.tasks import TASKS  # they bring all mechanisms along

    if not isinstance(id, str) or id not in TASKS:
        raise UnknownName("exercise", id, TASKS)
    return Exercise(TASKS[id], student)
