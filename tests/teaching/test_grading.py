"""`workbench grade`: marks from the text of notebooks, functions called apart, broken files named, all or nothing."""

import csv
import io
import json
import math

import pytest

from workbench.cli import main
from workbench.teaching.task import student_rng
from workbench.teaching.tasks import TASKS

HEAD = 'import workbench as wb\n\nstudent = "Ada"'
ACTIVE = "aegaeon/active-models"
KEPT = "application/vnd.workbench.answer+json"


def active(student="Ada"):
    numbers = TASKS[ACTIVE].draw(student_rng(ACTIVE, student))
    return numbers["models"], numbers["per_hour"], numbers["seconds"]


def check(inside, id=ACTIVE, student="student"):
    return f'wb.exercise("{id}", student={student}).check({inside})'


def grade(folder, *options):
    code = main(["grade", str(folder), *options])
    out = folder / "grades.csv"
    rows = list(csv.DictReader(io.StringIO(out.read_text()))) if out.is_file() else []
    return code, {(row["file"], row["exercise"]): row for row in rows}


@pytest.mark.parametrize(
    "inside",
    [
        "{value}",
        "answer",
        "round({models} * (1 - exp(-{per_hour} * {seconds} / 3600)), 2)",
        "{models} * (1 - math.exp(-rate * {seconds}))",
        "given={value}",
    ],
)
def test_a_value_is_read_from_the_text_of_a_notebook(hand_in, inside):
    models, per_hour, seconds = active()
    value = models * (1 - math.exp(-per_hour * seconds / 3600))
    known = {"models": models, "per_hour": per_hour, "seconds": seconds, "value": value}
    cell = f"rate = {per_hour} / 3600\nanswer = {value}\n%time 3\n" + check(inside.format(**known))
    hand_in("ada.ipynb", HEAD, "from math import exp\nimport math", cell)
    code, rows = grade(hand_in.folder)
    assert code == 0
    marks = [rows["ada.ipynb", id]["mark"] for id in TASKS if id.startswith("aegaeon")]
    assert marks == ["right", "missing", "missing"]
    assert rows["ada.ipynb", ACTIVE]["student"] == "Ada"
    assert len(rows) == 3


def test_a_wrong_value_a_slip_and_anothers_numbers_are_wrong(hand_in):
    models, per_hour, seconds = active()
    right = models * (1 - math.exp(-per_hour * seconds / 3600))
    hand_in("a.ipynb", HEAD, check(models * per_hour / 3600 * seconds))
    hand_in("b.ipynb", HEAD.replace("Ada", "Bo"), check(right))
    hand_in("deep/c.ipynb", HEAD, check("0"), check(right))  # the last one counts
    hand_in(".ipynb_checkpoints/d.ipynb", HEAD, check(right))
    hand_in("e.ipynb", HEAD, f'one = wb.exercise("{ACTIVE}", student=student)', "one", f"display(one.check({right}))")
    code, rows = grade(hand_in.folder)
    assert code == 0
    assert "two at one model make it active once" in rows["a.ipynb", ACTIVE]["remark"]
    marks = {file: row["mark"] for (file, id), row in rows.items() if id == ACTIVE}
    assert marks == {"a.ipynb": "wrong", "b.ipynb": "wrong", "deep/c.ipynb": "right", "e.ipynb": "right"}


def test_what_cannot_be_read_is_taken_from_the_last_run_or_missing(hand_in):
    """Nothing of a notebook is run: an answer that is computed by other code counts only where an output kept it."""
    models, per_hour, seconds = active()
    right = models * (1 - math.exp(-per_hour * seconds / 3600))
    marker = hand_in.folder / "ran"
    code_cell = f'open({str(marker)!r}, "w")\n' + check("sum(x for x in found)")
    kept = {KEPT: {"exercise": ACTIVE, "student": "Ada", "given": right}, "text/plain": "Right"}
    hand_in("kept.ipynb", HEAD, code_cell, outputs=[kept])
    hand_in("not-kept.ipynb", HEAD, code_cell)
    hand_in("forged.ipynb", HEAD, code_cell, outputs=[{KEPT: {**kept[KEPT], "student": "Bo"}}])
    hand_in("nobody.ipynb", HEAD.replace("Ada", "your name"), check("7"))
    hand_in("empty.ipynb", HEAD, check(""), check("None", "aegaeon/pace"))
    _, rows = grade(hand_in.folder)
    marks = {file: row["mark"] for (file, id), row in rows.items() if id == ACTIVE}
    assert marks == {
        "kept.ipynb": "right", "not-kept.ipynb": "missing", "forged.ipynb": "wrong", "nobody.ipynb": "missing",
        "empty.ipynb": "missing",
    }  # fmt: skip
    assert "last run" in rows["kept.ipynb", ACTIVE]["remark"]
    assert "no plain number or function" in rows["not-kept.ipynb", ACTIVE]["remark"]
    assert "still 'your name'" in rows["nobody.ipynb", ACTIVE]["remark"]
    assert not marker.exists()


STEPS = """import math
print("no harm")
LAST = 1

def hops(nodes):
    return math.ceil(math.log2(nodes))

def steps(nodes, blocks):
    print("at work", nodes)
    return hops(nodes) + blocks - LAST
"""


def test_functions_are_called_apart_with_a_time_limit_and_do_no_harm(hand_in, monkeypatch):
    monkeypatch.setattr("workbench.teaching.calling.TIME_LIMIT_S", 8.0)
    marker = hand_in.folder / "harm"
    steps = check("steps", "lambdascale/steps")
    for name, body in {
        "exits": "import os\n    os._exit(0)",
        "raises": "raise SystemExit('no')",
        "writes": f"open({str(marker)!r}, 'w').write('x' * 9)\n    return 1",
        "says much": "return 'x' * 10 ** 7",
    }.items():
        hand_in(f"{name}.ipynb", HEAD, f"def steps(nodes, blocks):\n    {body}\n", steps)
    hand_in("good.ipynb", HEAD, STEPS, steps)
    hand_in("lambda.ipynb", HEAD, check("lambda n, m: (n - 1).bit_length() + m - 1", "lambdascale/steps"))
    hand_in("named.ipynb", HEAD, "steps = lambda n, m: (n - 1).bit_length() + m - 1", steps)
    hand_in("number.ipynb", HEAD, check("18", "lambdascale/steps"), check("steps", ACTIVE))
    code, rows = grade(hand_in.folder)
    assert code == 0
    said = {file: row for (file, id), row in rows.items() if id == "lambdascale/steps"}
    right = {"good.ipynb", "lambda.ipynb", "named.ipynb"}
    assert {file for file, row in said.items() if row["mark"] == "right"} == right
    assert {file for file, row in said.items() if row["mark"] == "wrong"} == set(said) - right
    assert "ended its process" in said["exits.ipynb"]["remark"]
    assert "SystemExit: no" in said["raises.ipynb"]["remark"]
    assert "no number" in said["says much.ipynb"]["remark"]
    assert "a function steps(nodes, blocks) is asked for" in said["number.ipynb"]["remark"]
    assert not marker.exists() or marker.read_text() == ""


def test_a_function_that_never_ends_is_ended_with_what_it_started(tmp_path):
    import time

    from workbench.teaching.calling import call_apart

    began = time.monotonic()
    source = "import subprocess\ndef f(x):\n    subprocess.Popen(['sleep', '60'])\n    while True: pass\n"
    said = call_apart(source, "f", [(1,), (2,)], limit_s=3.0)
    assert said == [(None, "did not end within 3 s")] * 2
    assert time.monotonic() - began < 20


def test_a_check_without_a_students_name_says_so(hand_in):
    """Whatever the name is lost by; where an output of a run holds it, that is taken."""
    lost = {
        "none.ipynb": f'wb.exercise("{ACTIVE}").check(3)',
        "empty.ipynb": check(3, student='" "'),
        "asked.ipynb": "student = input()\n" + check(3),
        "null.ipynb": f'one = wb.exercise(id="{ACTIVE}", student=None)\none.check(3)',
    }
    for name, cell in lost.items():
        hand_in(name, "import workbench as wb", cell)
    models, per_hour, seconds = active()
    right = models * (1 - math.exp(-per_hour * seconds / 3600))
    kept = {KEPT: {"exercise": ACTIVE, "student": "Ada", "given": right}}
    hand_in("ran.ipynb", "student = input()", check("3"), outputs=[kept])
    code, rows = grade(hand_in.folder)
    assert code == 0
    for name in lost:
        row = rows[name, ACTIVE]
        assert (row["mark"], row["student"], row["given"]) == ("missing", "", "3")
        assert "no student is named" in row["remark"]
        assert "nothing was given" in rows[name, "aegaeon/pace"]["remark"]
    assert (rows["ran.ipynb", ACTIVE]["mark"], rows["ran.ipynb", ACTIVE]["student"]) == ("right", "Ada")


BROKEN = {
    "cut.ipynb": ('{"cells": [{"cell_type": "code", "source": "wb.ex', "cannot be read as JSON"),
    "picture.ipynb": ("\x89PNG\r\n", "cannot be read as JSON"),
    "old.ipynb": ('{"worksheets": [], "nbformat": 3}', "no list of cells"),
    "list.ipynb": ("[1, 2]", "no list of cells"),
    "deep.ipynb": ("[" * 200_000, "cannot be read as JSON"),
    "other.ipynb": (
        json.dumps({"cells": [{"cell_type": "code", "source": 'wb.exercise("aegaeon/pac", "Ada").check(3)'}]}),
        "holds no check of an exercise that there is (it checks 'aegaeon/pac')",
    ),
    "lecture.ipynb": ('{"cells": []}', "holds no check of an exercise"),
}


def test_each_broken_file_gets_one_sentence_and_the_others_their_marks(hand_in, capsys):
    for name, (text, _) in BROKEN.items():
        hand_in(name, text=text)
    hand_in("no-python.ipynb", HEAD, check("3").replace("(", "((", 1))
    hand_in("half.ipynb", HEAD, "def f(:\n  pass", check("3"))
    code, rows = grade(hand_in.folder)
    assert code == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == len(BROKEN) + 2  # each file, and how many there were
    for name, (_, why) in BROKEN.items():
        assert rows[name, ""]["mark"] == "unreadable"
        assert why in rows[name, ""]["remark"]
        assert sum(name in line and why in line for line in said[:-1]) == 1
    assert "code cell 2 is no Python" in rows["no-python.ipynb", ""]["remark"]
    assert rows["half.ipynb", ACTIVE]["mark"] == "wrong"
    assert "cell 2 is no Python" in rows["half.ipynb", "aegaeon/pace"]["remark"]
    assert "8 notebooks could not be graded" in said[-1]


def test_what_no_table_could_hold_spoils_nobodys_marks(hand_in):
    half = "'\\ud800'"  # half a letter, as Python's text writes it
    hand_in("name.ipynb", HEAD, check("3", student=half))
    hand_in("value.ipynb", HEAD, check(half))
    hand_in("error.ipynb", HEAD, "def f(*_):\n    raise ValueError(" + half + ")", check("f", "aegaeon/in-time"))
    hand_in("outputs.ipynb", text='{"cells": [{"cell_type": "code", "source": "", "outputs": 5}]}')
    (hand_in.folder / "folder.ipynb").mkdir()
    (hand_in.folder / "link.ipynb").symlink_to("nowhere")
    code, rows = grade(hand_in.folder)
    assert code == 1
    marks = {file: row["mark"] for (file, id), row in rows.items() if row["given"] or not id}
    assert marks == {
        "name.ipynb": "wrong", "value.ipynb": "wrong", "error.ipynb": "wrong", "outputs.ipynb": "unreadable",
        "folder.ipynb": "unreadable", "link.ipynb": "unreadable",
    }  # fmt: skip
    assert "is no file, or a link to none" in rows["link.ipynb", ""]["remark"]


def test_no_folder_and_no_notebooks_are_the_users_to_mend(tmp_path, capsys):
    assert main(["grade", str(tmp_path / "nowhere")]) == 2
    assert main(["grade", str(tmp_path)]) == 2
    (tmp_path / "a file").write_text("")
    assert main(["grade", str(tmp_path), "--out", str(tmp_path / "a file" / "grades.csv")]) == 2
    assert main(["grade", str(tmp_path / "a file")]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    assert said[-1].endswith("name the one that holds the students' notebooks.")
    assert all(line.startswith("workbench: ") for line in said)
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


def test_a_grading_that_is_interrupted_leaves_the_old_table(hand_in, monkeypatch):
    hand_in("a.ipynb", HEAD, check("3"))
    old = hand_in.folder / "grades.csv"
    old.write_text("the old table")

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("workbench.teaching.grading.read_answers", interrupted)
    assert main(["grade", str(hand_in.folder)]) == 1
    assert old.read_text() == "the old table"
    assert sorted(path.name for path in hand_in.folder.iterdir()) == ["a.ipynb", "grades.csv"]


def test_nothing_in_the_table_is_a_formula_of_a_spreadsheet(hand_in):
    hand_in("a.ipynb", HEAD.replace('"Ada"', "\"=HYPERLINK('x')\""), check("-3"), check("'=1+1'", "aegaeon/pace"))
    _, rows = grade(hand_in.folder)
    cells = [cell for row in rows.values() for cell in row.values()]
    assert "'=HYPERLINK('x')" in cells
    assert "-3" in cells
    assert "'=1+1" in cells
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "@")]
