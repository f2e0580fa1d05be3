"""The command line: exit codes, one sentence on stderr, and what it writes."""

import os
import subprocess
import sys

import pytest

from workbench.catalogue import reporting, spec
from workbench.cli import main


def run(capsys, *arguments):
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_list_and_show(capsys):
    code, out, _ = run(capsys, "list", "blitzscale")
    assert code == 0
    listed = [line.split()[0] for line in out.splitlines()]
    assert listed == [entry.id for entry in spec.all_specs().values() if entry.paper == "blitzscale"]
    assert {"blitzscale/fig13", "blitzscale/fig14"} <= set(listed)
    code, out, _ = run(capsys, "show", "blitzscale/fig13")
    assert code == 0
    assert "OSDI'25 paper §5.1" in out


def test_run_writes_a_page_that_works_offline_and_tables(capsys, tmp_path):
    code, out, _ = run(
        capsys, "run", "lambdascale/fig5", "--backend", "analytic", "--set", "nodes=12", "--out", tmp_path
    )
    assert code == 0
    assert "not the paper's setting (8)" in out
    page = (tmp_path / "lambdascale-fig5.html").read_text()
    (library,) = tmp_path.glob("plotly-*.min.js")
    assert f'<script src="{library.name}">' in page
    assert library.stat().st_size > 1e6
    assert "http://" not in page
    assert "https://" not in page
    assert (tmp_path / "lambdascale-fig5" / "headline.parquet").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "lambdascale/fig55"], "workbench: There is no experiment named 'lambdascale/fig55'; near names: "),
        (
            ["run", "lambdascale/fig5", "--set", "nodes=1"],
            "workbench: lambdascale/fig5: parameter 'nodes' is out of range",
        ),
        (["run", "lambdascale/fig5", "--set", "nodes"], "workbench: --set takes NAME=VALUE, got 'nodes'"),
        (["run", "lambdascale/fig5", "--backend", "torch"], "workbench: lambdascale/fig5 has no torch backend"),
        (["run", "lambdascale/fig5", "--published", "no.csv"], "workbench: no.csv: no such file"),
        (["run", "lambdascale/fig7", "--set", "cluster=nowhere"], "workbench: There is no cluster named 'nowhere'"),
        (["run", "lambdascale/fig5", "--out", "/dev/null/here"], "workbench: /dev/null is not a folder; give another"),
        (["list", "blizzard"], "workbench: There is no paper named 'blizzard'"),
        (["reproduce", "blizzard"], "workbench: There is no paper named 'blizzard'"),
        (
            ["reproduce", "lambdascale/fig5"],
            "workbench: There is no paper named 'lambdascale/fig5'; near names: lambdascale, "
            "blitzscale. `workbench run lambdascale/fig5` runs that one experiment.",
        ),
        (["trace", "info", "no.csv"], "workbench: "),
        (["trace", "convert", "azure-code-2023-like", "out.xyz"], "workbench: "),
        (["trace", "info", "azure-code-2023-like", "--column", "x"], "workbench: --column takes OURS=THEIRS"),
        (["data", "fetch", "burstgpt"], "workbench: There is no"),
        (["measure", "--seconds", "-1"], "workbench: "),
        (["measure", "--listen", "127.0.0.1:x"], "workbench: --listen takes ADDRESS"),
        (["measure", "--listen", "127.0.0.1:65536"], "workbench: --listen takes ADDRESS"),
        (["measure", "--listen", "127.0.0.1:²"], "workbench: --listen takes ADDRESS"),
        (["trace", "convert", "azure-code-2023-like", "/dev/null/x.csv"], "workbench: /dev/null is not a folder; give"),
        (["trace", "fit", "azure-code-2023-like", "--draw", "/dev/null/x.csv"], "workbench: /dev/null is not a folder"),
    ],
)
def test_what_the_user_can_mend_exits_with_2_and_one_sentence(capsys, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith(sentence)
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_no_command_prints_help(capsys):
    code, out, _ = run(capsys)
    assert code == 0
    assert "reproduce" in out


def test_trace_commands(capsys, tmp_path):
    code, out, _ = run(capsys, "trace", "info", "lambdascale-burst-like")
    assert code == 0
    assert "generated stand-in, not the trace" in out
    code, out, _ = run(capsys, "trace", "windows", "lambdascale-burst-like", "--length", "60", "--top", "3")
    assert code == 0
    code, out, _ = run(capsys, "trace", "convert", "lambdascale-burst-like", tmp_path / "burst.csv")
    assert code == 0
    code, out, _ = run(capsys, "trace", "info", tmp_path / "burst.csv")
    assert "498 requests" in out


def test_doctor_says_that_the_data_folder_is_none(capsys, home, monkeypatch, tmp_path):
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path / "nowhere"))
    assert f"WORKBENCH_DATA names {tmp_path / 'nowhere'}, which is no folder\n" in run(capsys, "doctor")[1]
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    assert "which is no folder" not in run(capsys, "doctor")[1]


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_a_terminal_without_greek_letters_shows_the_rest(encoding):
    """The names of a few experiments have some; the first line is the same everywhere."""
    command = [sys.executable, "-c", "import sys; from workbench.cli import main; sys.exit(main(['list']))"]
    done = subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert (done.returncode, done.stderr) == (0, b"")
    lines = done.stdout.decode(encoding).splitlines()
    assert len(lines) > 100
    assert any("\N{GREEK SMALL LETTER ALPHA}" in line for line in lines) == (encoding == "utf-8")


def test_doctor_says_what_is_there(capsys, home):
    code, out, _ = run(capsys, "doctor")
    assert code == 0
    assert "`workbench measure` makes it" in out


def test_reproduce_writes_report_pages_and_tables(capsys, tmp_path, monkeypatch):
    entries = {id: spec.find(id) for id in ("blitzscale/fig13", "blitzscale/fig14")}
    monkeypatch.setattr(spec, "all_specs", lambda: entries)
    monkeypatch.setattr(reporting, "all_specs", lambda: entries)
    code, out, _ = run(capsys, "reproduce", "blitzscale", "--quick", "--no-torch", "--out", tmp_path)
    assert code == 0
    report = (tmp_path / "REPORT.md").read_text()
    assert "| reproduced | differs |" in report
    assert f"## {spec.find('blitzscale/fig13').title}" in report
    assert "blitzscale, Fig 17" in report
    assert "Catalogue rows without an entry" in report
    assert (tmp_path / "blitzscale-fig13.html").is_file()
    assert "Verdicts: 3 reproduced" in out


def test_an_unexpected_failure_is_one_sentence_too(capsys, monkeypatch):
    monkeypatch.setattr(spec, "find", lambda _: 1 / 0)
    code, _, err = run(capsys, "show", "lambdascale/fig5")
    assert code == 1
    assert err == "workbench: ZeroDivisionError: division by zero; set WORKBENCH_DEBUG=1 to see where it happened.\n"
