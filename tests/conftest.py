"""Fixtures for all tests: the shared data folder, a home and a cache of their own."""

import os
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("workbench", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("workbench")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real traces and measurements, where `WORKBENCH_DATA` names one."""
    if not (given := os.environ.get("WORKBENCH_DATA")):
        pytest.skip("WORKBENCH_DATA is not set: it names the folder that holds traces/, measured/ and oracles/")
    folder = Path(given)
    if not folder.is_dir():
        pytest.fail(f"WORKBENCH_DATA names {folder}, which is not a folder")
    return folder


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """An empty user data folder, so that a test neither sees nor touches the user's own profile and downloads."""
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
