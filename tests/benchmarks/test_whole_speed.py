"""How long the whole takes: every experiment, every notebook, every kernel compiled from nothing, and the tests."""

import os
import subprocess
import sys
import time
from pathlib import Path

import notebook_check
import pytest

from workbench.paths import notebooks_folder

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(notebooks_folder().glob("*.ipynb"))


def seconds_of(words, folder, **options) -> float:
    """A command of the workbench with nothing compiled and nothing kept."""
    places = {name: str(folder / name.lower()) for name in ("WORKBENCH_HOME", "WORKBENCH_CACHE", "NUMBA_CACHE_DIR")}
    start = time.perf_counter()
    command = [str(Path(sys.executable).with_name("workbench")), *words]
    subprocess.run(command, check=True, cwd=folder, env=os.environ | places, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


@pytest.mark.timeout(3600)
def test_every_experiment(tmp_path, budget):
    budget("reproduce", seconds_of(["reproduce", "all", "--quick", "--out", "out"], tmp_path))


@pytest.mark.timeout(1200)
def test_every_kernel_compiled(tmp_path, budget):
    budget("warm", seconds_of(["warm"], tmp_path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook(path, budget):
    start = time.perf_counter()
    notebook_check.check(path)
    budget("notebook", time.perf_counter() - start, path.stem)


def test_the_tests(budget):
    """As `make test` noted it when it last came to its end."""
    if not (noted := ROOT / ".venv" / "test-seconds").is_file():
        pytest.skip("make test has not come to its end here; run it first")
    budget("test", float(noted.read_text()))
