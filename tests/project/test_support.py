"""What tests lean on cleans up after itself."""

import subprocess
import sys
import tempfile
from pathlib import Path

import labdriver
import pytest


def test_a_server_that_does_not_start_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(labdriver, "_command", lambda root, port: ["sh", "-c", "echo no such luck; exit 3"])
    with pytest.raises(RuntimeError, match="no such luck"), labdriver.lab(tmp_path):
        pytest.fail("it started")
    assert list(tmp_path.iterdir()) == []


def test_a_test_that_fails_leaves_no_folder_and_no_server(tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(labdriver, "_command", lambda root, port: ["sleep", "60"])
    monkeypatch.setattr(labdriver, "_answering", lambda base, process, log, timeout_s: started.append(process) or base)
    with pytest.raises(ZeroDivisionError), labdriver.lab(tmp_path):
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []
    assert started[0].poll() is not None


def test_in_a_python_without_torch_nothing_finds_it():
    place = Path(labdriver.__file__).parent / "without_torch"
    code = "import importlib.util as u, subprocess, sys; print(u.find_spec('torch'), u.find_spec('numpy') is not None)"
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    for program in (code, inner):
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env={"PYTHONPATH": str(place)}, check=True
        )
        assert done.stdout.split() == ["None", "True"]
