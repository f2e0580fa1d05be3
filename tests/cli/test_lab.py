"""`workbench lab` never opens the files of an installed package, and never overwrites what a reader edited."""

import importlib.util
import subprocess
import sys

import pytest

from workbench import paths
from workbench.cli import main
from workbench.cli.lab import copy_notebooks


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """Notebooks as an installed package holds them; the reader stands in another folder, `here`."""
    package = tmp_path / "site-packages" / "workbench"
    (package / "_notebooks").mkdir(parents=True)
    for name in ("00-start", "01-moving-weights"):
        (package / "_notebooks" / f"{name}.ipynb").write_text(f"{name}, first version")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(paths, "PACKAGE", package)
    return package / "_notebooks"


@pytest.fixture
def opened(monkeypatch):
    """The commands that would have been started."""
    commands = []
    monkeypatch.setattr(subprocess, "call", lambda command: commands.append(command) or 0)
    return commands


def test_an_installed_package_is_worked_on_as_copies(packed, opened, capsys, tmp_path):
    assert main(["lab", "--no-browser"]) == 0
    copies = tmp_path / "here" / "workbench-notebooks"
    assert [path.name for path in sorted(copies.glob("*.ipynb"))] == ["00-start.ipynb", "01-moving-weights.ipynb"]
    (command,) = opened
    assert command[:4] == [sys.executable, "-m", "jupyterlab", "workbench-notebooks/00-start.ipynb"]
    assert "--no-browser" in command
    assert f"copies of the notebooks, in {copies}" in capsys.readouterr().out


def test_a_checkout_is_opened_itself(opened, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["lab"]) == 0
    assert opened[0][3] == str(paths.notebooks_folder() / "00-start.ipynb")
    assert list(tmp_path.iterdir()) == []


def test_an_upgrade_renews_untouched_copies_and_keeps_edited_ones(packed, capsys, tmp_path):
    target = copy_notebooks(packed, tmp_path / "mine")
    (target / "01-moving-weights.ipynb").write_text("edited by the reader")
    for name in ("00-start", "01-moving-weights", "02-waiting"):
        (packed / f"{name}.ipynb").write_text(f"{name}, second version")
    capsys.readouterr()
    for _ in range(2):
        copy_notebooks(packed, target)
        said = capsys.readouterr().out
        assert "Your edited 01-moving-weights.ipynb stayed as you left it" in said
        assert "00-start" not in said
    assert (target / "00-start.ipynb").read_text() == "00-start, second version"
    assert (target / "01-moving-weights.ipynb").read_text() == "edited by the reader"
    assert (target / "02-waiting.ipynb").read_text() == "02-waiting, second version"


@pytest.mark.parametrize("damage", ["", "{", "[]", None])
def test_copies_of_unknown_age_are_kept(packed, capsys, tmp_path, damage):
    target = copy_notebooks(packed, tmp_path / "mine")
    manifest = target / ".copied.json"
    manifest.unlink() if damage is None else manifest.write_text(damage)
    (packed / "00-start.ipynb").write_text("00-start, second version")
    copy_notebooks(packed, target)
    assert (target / "00-start.ipynb").read_text() == "00-start, first version"
    assert "Your edited 00-start.ipynb stayed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda here, packed: (here / "workbench-notebooks").write_text(""), "give another folder with --copy-to"),
        (lambda here, packed: [path.unlink() for path in packed.iterdir()], "reinstall the workbench"),
    ],
)
def test_what_cannot_be_copied_is_one_sentence(packed, opened, capsys, tmp_path, prepare, sentence):
    prepare(tmp_path / "here", packed)
    assert main(["lab"]) == 2
    assert sentence in capsys.readouterr().err
    assert opened == []


def test_without_jupyterlab_the_command_that_adds_it_is_named(monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["lab"]) == 2
    assert 'pip install "workbench-llm[lab]"' in capsys.readouterr().err
