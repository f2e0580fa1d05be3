"""Fixtures for the tests of profiles."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def shared_profiles() -> Path:
    """The folder of the shared profile data; the test is skipped where it is absent."""
    given = os.environ.get("WORKBENCH_DATA")
    if not given:
        pytest.skip("WORKBENCH_DATA is not set: it names the shared data folder this test compares with")
    return Path(given) / "profiles"
