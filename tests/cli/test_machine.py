"""`workbench doctor` and `workbench data list`: what is there, what is missing, and where it comes from."""

import importlib.util

import polars as pl
import pytest

from workbench.catalogue.measured_links import LINKS
from workbench.cli import main, pages
from workbench.paths import facts_folder

FIND = importlib.util.find_spec


def shown(capsys, *arguments):
    assert main(arguments) == 0
    return capsys.readouterr().out


def without(monkeypatch, *missing):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name in missing else FIND(name, *more))


def test_doctor_names_every_purpose_of_what_is_missing(capsys, monkeypatch):
    without(monkeypatch, "jupyterlab", "ipywidgets", "anywidget", "torch")
    out = shown(capsys, "doctor")
    assert 'To add explorers, notebooks: pip install "workbench-llm[lab]"' in out
    assert "To add real runs: pip install torch==" in out
    assert "No package is missing" not in out


@pytest.mark.parametrize(
    ("missing", "found", "said"),
    [
        ((), True, "found (still images)"),
        ((), False, "missing (to draw still images (SVG) with; all else works without: install Google Chrome"),
        (("kaleido",), False, "not looked for, since kaleido is missing"),
    ],
)
def test_doctor_on_chrome(capsys, monkeypatch, missing, found, said):
    without(monkeypatch, *missing)
    monkeypatch.setattr(pages, "chrome_found", lambda: found)
    (line,) = (line for line in shown(capsys, "doctor").splitlines() if line.split()[:1] == ["Chrome"])
    assert said in line


def test_data_list_names_the_sources_of_measurements(capsys, monkeypatch):
    monkeypatch.delenv("WORKBENCH_DATA", raising=False)
    out = shown(capsys, "data", "list")
    for repository in ("microsoft/vidur", "ai-dynamo/aiconfigurator", "microsoft/apex_plus"):
        assert repository in out
    assert "measured/FOLDER/" in out


def test_every_project_whose_links_are_read_is_listed():
    folders = {"vidur": "vidur", "apex_pair": "apex_plus", "apex_ring": "apex_plus", "aiconfigurator": "aiconfigurator"}
    table = pl.read_csv(facts_folder() / "measured.csv", infer_schema=False)
    assert {folders[project] for project, _, _ in LINKS.values()} <= set(table["folder"])
    assert table["licence"].is_in(["MIT", "Apache-2.0"]).all()
    assert table["commit"].str.contains("^[0-9a-f]{7,8}$").all()
    assert not table.null_count().sum_horizontal().item()


def test_folders_are_named_as_they_lie(shared_data):
    table = pl.read_csv(facts_folder() / "measured.csv", infer_schema=False)
    assert all((shared_data / "measured" / folder).is_dir() for folder in table["folder"])


@pytest.mark.parametrize("arguments", [["measure", "--seconds", "1"], ["data", "fetch", "azure-code-2023"]])
def test_a_home_that_cannot_be_written_is_refused_first(capsys, monkeypatch, arguments):
    monkeypatch.setenv("WORKBENCH_HOME", "/dev/null/home")
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("workbench: /dev/null is not a folder; ")
    assert said.count("\n") == 1
