"""Teachers' guides: a lesson of fifty minutes, at most three questions, and every drag does what the guide says."""

import functools
import re
from typing import NamedTuple

import nbformat
import polars as pl
import pytest

import workbench as wb
from workbench.catalogue import spec
from workbench.paths import notebooks_folder
from workbench.teaching.tasks import TASKS

GUIDES = sorted((notebooks_folder() / "teaching").glob("*.md"))
PAPERS = {
    "10-blitzscale": "blitzscale", "11-aegaeon": "aegaeon", "12-lambdascale": "lambdascale",
    "13-server-chains": "chains", "14-blendserve": "blendserve", "20-showdown": "showdown",
}  # fmt: skip
HEAD = ["experiment", "set", "parameter", "from", "to", "quantity", "happens"]
STILL = 0.02
"""Relative change up to which a quantity stays."""


class Drag(NamedTuple):
    experiment: str
    set: str
    parameter: str
    start: str
    end: str
    quantity: str
    happens: str


def rows(text):
    """Cells of each line of each table of a guide, the lines of dashes left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [cells for line in lines if not re.fullmatch(r"[|-]+", line) for cells in [cells_of(line)]]


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def drags_of(path):
    table = rows(path.read_text().split("\n## Drags\n")[1])
    assert table[0] == HEAD
    return [Drag(*cells) for cells in table[1:]]


@functools.cache
def headline(experiment, settings):
    """What an explorer shows at once, the experiment's first backend, unless the guide names another."""
    entry, given = wb.experiment(experiment), dict(settings)
    backend = given.pop("backend", entry.backends[0])
    return entry.run(backend, quick=True, **given).tables["headline"]


def value(drag, at, quantity):
    """A quantity, "series", "series @ x" or "series @ last", with the slider at a place."""
    settings = [tuple(part.strip().split("=", 1)) for part in drag.set.split(";") if part]
    table = headline(drag.experiment, (*settings, (drag.parameter, at)))
    series, _, x = (part.strip() for part in quantity.partition(" @ "))
    found = table.filter(pl.col("series") == series)
    if x == "last":
        found = found.sort(pl.col("x").cast(pl.Float64)).tail(1)
    elif x:
        found = found.filter(pl.col("x").cast(pl.String) == x)
    assert len(found), f"{drag.experiment} has no {quantity!r}"
    return found["value"][0]


def check(drag):
    """Make a drag and see whether what happens is what the guide says."""
    first, last = (value(drag, at, drag.quantity) for at in (drag.start, drag.end))
    what, _, other = drag.happens.partition(" ")
    if what == "overtakes":
        beside = [value(drag, at, other) for at in (drag.start, drag.end)]
        assert first <= beside[0], "it is ahead from the beginning"
        assert last > beside[1] * (1 + STILL)
        return
    if other.startswith("below "):
        beside = [value(drag, at, other.removeprefix("below ")) for at in (drag.start, drag.end)]
        assert what == "stays"
        assert first <= beside[0] * (1 - STILL)
        assert last <= beside[1] * (1 - STILL)
        return
    if what == "crosses":
        assert (first - float(other)) * (last - float(other)) < 0
        return
    change = (last - first) / abs(first)
    assert {"rises": change > STILL, "falls": change < -STILL, "stays": abs(change) <= STILL}[what], (first, last)


def test_every_notebook_has_its_guide():
    assert [path.stem for path in GUIDES] == sorted(path.stem for path in notebooks_folder().glob("*.ipynb"))


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_a_lesson_lasts_fifty_minutes_and_asks_three_questions_at_most(path):
    text = path.read_text()
    plan = rows(text.split("\n## ")[0])
    assert plan[0] == ["minutes", "what"]
    assert sum(int(minutes) for minutes, _ in plan[1:]) == 50
    questions = [part for part in text.split("\n## ") if part.startswith("Question ")]
    assert 1 <= len(questions) <= 3
    for number, question in enumerate(questions, start=1):
        assert re.match(rf"Question {number}: [^\n]*\?\n", question)
        assert any(what.startswith(f"Question {number}") for _, what in plan)
        assert "**Students get wrong:**" in question
        assert re.search(r"^- .*([Dd]rag|[Cc]hoose|[Cc]hange)", question, flags=re.MULTILINE)


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_every_drag_does_what_the_guide_says(path):
    drags = drags_of(path)
    notebook = nbformat.read(notebooks_folder() / f"{path.stem}.ipynb", as_version=4)
    source, text = "\n".join(cell.source for cell in notebook.cells), " ".join(path.read_text().split())
    for drag in drags:
        assert f'wb.experiment("{drag.experiment}").explore(' in source
        assert f"`{drag.experiment}`" in text, "no question is about it"
        known = {item.name: item.about.label for item in spec.find(drag.experiment).parameters}
        assert f"*{known[drag.parameter]}*" in text, "the control is not named as the explorer names it"
        try:
            check(drag)
        except AssertionError as wrong:
            raise AssertionError(f"{path.name}: {drag.experiment}, {drag.quantity}: {wrong}") from wrong


def test_a_drag_that_does_something_else_is_found():
    half = "throughput over one full instance, half of the layers loaded @ 7 layers, as claimed"
    drag = Drag("blitzscale/fig9", "", "layers", "7", "8", half, "")
    check(drag._replace(happens="crosses 1.9"))
    for wrong in ("falls", "stays", "crosses 3"):
        with pytest.raises(AssertionError):
            check(drag._replace(happens=wrong))
    with pytest.raises(AssertionError, match="has no"):
        check(drag._replace(quantity="a series that is not there", happens="rises"))


@pytest.mark.parametrize(("stem", "paper"), PAPERS.items())
def test_a_guide_names_the_exercises_of_its_notebook(stem, paper):
    text = (notebooks_folder() / "teaching" / f"{stem}.md").read_text()
    named = re.findall(r"`([a-z]+/[a-z-]+)`", text.split("\n## Exercises\n")[1])
    assert named == [id for id in TASKS if id.startswith(f"{paper}/")]
