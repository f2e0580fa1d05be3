"""The notebooks with exercises end with them: unanswered, gradable as saved, and right when done."""

import json
import re

import pytest

from workbench.paths import notebooks_folder
from workbench.teaching.grading import grade_folder
from workbench.teaching.reading import PLACEHOLDER, read_answers
from workbench.teaching.task import ValueTask, student_rng
from workbench.teaching.tasks import TASKS

NOTEBOOKS = {
    "10-blitzscale": "blitzscale", "11-aegaeon": "aegaeon", "12-lambdascale": "lambdascale",
    "13-server-chains": "chains", "14-blendserve": "blendserve", "20-showdown": "showdown",
}  # fmt: skip


def path_of(stem):
    return notebooks_folder() / f"{stem}.ipynb"


@pytest.mark.parametrize(("stem", "paper"), NOTEBOOKS.items())
def test_a_notebook_asks_its_papers_exercises_and_answers_none(stem, paper):
    given = read_answers(path_of(stem)).given
    assert set(given) == {id for id in TASKS if id.startswith(f"{paper}/")}
    for id, answer in given.items():
        assert answer.student == PLACEHOLDER
        assert answer.value is None
        assert bool(answer.function) == (not isinstance(TASKS[id], ValueTask))


@pytest.mark.parametrize(("stem", "paper"), NOTEBOOKS.items())
def test_filled_in_as_a_student_would_its_values_are_right_and_its_scaffold_is_not(stem, paper, tmp_path):
    """The name is put in, and each None in the brackets of a check is replaced by the answer."""
    notebook = json.loads(path_of(stem).read_text())
    for cell in notebook["cells"]:
        text = "".join(cell["source"]).replace(f'"{PLACEHOLDER}"', '"Ada"')
        for name, id in re.findall(r'(\w+) = wb\.exercise\(\s*"([^"]+)"', text):
            if isinstance(TASKS[id], ValueTask):
                answer = TASKS[id].answer(**TASKS[id].draw(student_rng(id, "Ada")))
                text = text.replace(f"{name}.check(None)", f"{name}.check({answer!r})")
        cell["source"] = text
    (tmp_path / "ada.ipynb").write_text(json.dumps(notebook))
    graded = grade_folder(tmp_path)
    assert graded.broken == {}
    marks = dict(graded.table.select("exercise", "mark").rows())
    assert marks == {
        id: "right" if isinstance(task, ValueTask) else "wrong"
        for id, task in TASKS.items()
        if id.startswith(f"{paper}/")
    }
