"""Every notebook: thin, stored without output, executed from top to bottom, and free of hidden errors."""

import ast
import os
import subprocess
import sys

import nbformat
import notebook_check
import pytest

from workbench.paths import notebooks_folder

NOTEBOOKS = sorted(notebooks_folder().glob("*.ipynb"))


def read(path):
    return nbformat.read(path, as_version=4)


def test_the_notebooks_are_found():
    assert [path.name for path in NOTEBOOKS][:4] == [
        "00-start.ipynb",
        "01-moving-weights.ipynb",
        "02-waiting.ipynb",
        "03-serving-a-burst.ipynb",
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_stored_without_output_and_thin(path):
    notebook = read(path)
    assert not notebook.metadata.get("widgets"), "stored widget state; run nbstripout"
    assert len(notebook.cells) <= 40
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        assert not cell.outputs, "stored output; run nbstripout"
        assert cell.execution_count is None
        assert max(len(line) for line in cell.source.splitlines()) <= 58, "wider than a cell at 900 pixels"
        if "student" not in cell.metadata.get("tags", ()):
            kinds = {type(node) for node in ast.walk(ast.parse(cell.source))}
            assert not kinds & {ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef}, "move the code into the package"


@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(path):
    notebook_check.check(path)


def write(path, source):
    """A notebook of one cell."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)
    return path


@pytest.mark.notebook
def test_two_notebooks_at_once_keep_apart_and_leave_nothing_behind(tmp_path, monkeypatch):
    """Kernels are spoken to through files: each run has a folder of its own for them."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    paths = [write(tmp_path / f"{number}.ipynb", f"print({number})") for number in (1, 2)]
    command = [sys.executable, "-c", "import sys, notebook_check as c; print(c.check(sys.argv[1]).cells[0].outputs)"]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(notebook_check.__file__), "TMPDIR": str(tmp_path)}
    running = [subprocess.Popen([*command, path], stdout=subprocess.PIPE, text=True, env=environment) for path in paths]
    printed = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert ["'1\\n'" in printed[0], "'2\\n'" in printed[1]] == [True, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.ipynb", "2.ipynb", "here"]
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import ipywidgets as w\nout = w.Output()\nwith out:\n    1 / 0\nout",
        "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()",
        "import ipywidgets as w\nw.HTML('<div role=\"alert\">no</div>')",
    ],
    ids=["in an Output widget", "in a thread", "shown as an alert"],
)
@pytest.mark.notebook
def test_the_check_finds_planted_hidden_errors(tmp_path, source):
    write(tmp_path / "broken.ipynb", source)
    with pytest.raises(AssertionError):
        notebook_check.check(tmp_path / "broken.ipynb")
