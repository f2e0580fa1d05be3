"""Fixtures for the workloads: real traces where they are, none where they are not, and an empty machine."""

import json
import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def trace_folder() -> Path:
    """The folder of real traces."""
    given = os.environ.get("WORKBENCH_DATA")
    if not given or not (Path(given) / "traces").is_dir():
        pytest.skip("real traces are not here: WORKBENCH_DATA is not set")
    return Path(given) / "traces"


@pytest.fixture(scope="session")
def published(trace_folder) -> dict:
    """Statistics of the real files, computed elsewhere (trace_statistics.json)."""
    return json.loads((trace_folder / "trace_statistics.json").read_text())["files"]


@pytest.fixture
def empty_machine(tmp_path, monkeypatch) -> Path:
    """A machine without any trace; gives the folder where downloads go."""
    monkeypatch.delenv("WORKBENCH_DATA", raising=False)
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    folder = tmp_path / "home" / "traces"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def write(tmp_path):
    """Write a file and give its path."""

    def writing(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writing
