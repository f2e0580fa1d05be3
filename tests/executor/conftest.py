"""One pool of worker processes for all tests of the executor."""

from importlib.util import find_spec

import pytest

from workbench.executor.processes import Pool


@pytest.fixture(scope="session")
def pool():
    """Four worker processes; those that a test loses are replaced."""
    if find_spec("torch") is None:
        pytest.skip("torch is not installed: real runs need it")
    with Pool(4) as processes:
        yield processes
