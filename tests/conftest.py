"""For all tests: their order, the shared data folder, and a home and a cache of their own, but for compiled kernels.

No test sees the user's measured profile, downloads or kept results. Machine code lies where it always lies, because its
folders are named after what was compiled; so a second run of the tests need not compile again.
"""

import os
import tempfile
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

from workbench.paths import cache_folder

collect_ignore = ["support"]  # modules that tests import, no tests; one of them blocks torch for its process

SLOW = [hypothesis.HealthCheck.too_slow]  # a busy machine is no fault of a test
hypothesis.settings.register_profile(
    "workbench", deadline=None, derandomize=True, database=None, suppress_health_check=SLOW
)
hypothesis.settings.load_profile("workbench")

# Set before any test module is imported: some ask for profiles or load numba, which reads its variable once.
_own = tempfile.TemporaryDirectory(prefix="workbench-tests-")
os.environ.setdefault("NUMBA_CACHE_DIR", str(cache_folder() / "kernels"))
os.environ["WORKBENCH_HOME"], os.environ["WORKBENCH_CACHE"] = f"{_own.name}/home", f"{_own.name}/cache"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begun first, side by side: the file that compiles every kernel from nothing, and real runs, which mostly wait.

    Then whole notebooks, which are long. Files are handed to processes in this order, and a long one that is begun last
    keeps a single process busy. The order of files on pytest's command line would not do: it drops those that lie in a
    folder named there too.
    """

    def count(*markers: str) -> Counter:
        return Counter(item.path for item in items if any(map(item.get_closest_marker, markers)))

    waiting, long = count("real", "ui"), count("notebook")
    items.sort(key=lambda item: (item.path.name != "test_jit.py", -waiting[item.path], -long[item.path]))


def pytest_unconfigure() -> None:
    _own.cleanup()


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
    """An empty user data folder of this test alone."""
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
