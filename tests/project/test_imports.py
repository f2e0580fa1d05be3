"""Imports run one way: the contracts catch what they are for, and kernels import numbers only."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "workbench"
CONTRACTS = {
    contract["name"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
}
ROOMS = {"real", "simulated", "model", "kernels", "policy"}
KERNELS = sorted(
    path for path in PACKAGE.rglob("*.py") if path.name == "kernels.py" or "kernels" in path.relative_to(PACKAGE).parts
)
NUMBERS = {
    "math",
    "cmath",
    "numpy",
    "numba",
    "workbench.jit",
    "workbench.references",
    "typing",
    "fractions",
    "itertools",
}
"""What a kernel module may import; the last two are for the slow twins."""


def imported(path: Path) -> set[str]:
    """Full names of all modules that a file imports anywhere, relative imports included."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            found.add(".".join([*above, *([node.module] if node.module else [])]))
    return found


def strangers(path: Path) -> set[str]:
    """What a kernel module imports beyond numbers and the kernels and policy of its own mechanism."""
    mechanism = ".".join(path.relative_to(ROOT).parts[:2])
    own = (f"{mechanism}.kernels", f"{mechanism}.policy")
    return {
        name
        for name in imported(path)
        if name not in NUMBERS and not any(f"{name}.".startswith(f"{room}.") for room in own)
    }


def test_there_are_kernels_to_look_at():
    assert {path.relative_to(PACKAGE).parts[0] for path in KERNELS} >= {"transfer", "queueing", "latency"}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_kernels_import_numbers_and_their_own_mechanism_only(path):
    assert strangers(path) == set()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import scipy.special", {"scipy.special"}),
        ("import psutil", {"psutil"}),
        ("def f():\n    import polars", {"polars"}),
        ("from workbench.transfer.model import Hockney", {"workbench.transfer.model"}),
        ("from workbench.queueing.kernels import heaps", {"workbench.queueing.kernels"}),
        ("from ..model import Hockney", {"workbench.transfer.model"}),
        ("from .bits import ones", set()),
        ("from workbench.transfer.policy.order import renumber", set()),
        ("import numpy as np", set()),
    ],
)
def test_a_planted_import_in_a_kernel_is_found(tmp_path, monkeypatch, line, found):
    place = tmp_path / "workbench" / "transfer" / "kernels" / "planted.py"
    place.parent.mkdir(parents=True)
    place.write_text(line + "\n")
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert strangers(place) == found


def test_every_mechanism_with_several_rooms_has_its_contract():
    (rooms,) = (contract for name, contract in CONTRACTS.items() if name.startswith("Rooms of a mechanism"))
    mechanisms = {
        f"workbench.{folder.name}"
        for folder in PACKAGE.iterdir()
        if folder.is_dir() and len({path.stem for path in folder.iterdir()} & ROOMS) > 1
    }
    assert set(rooms["containers"]) == mechanisms


PLANTS = {
    "records.py": "import workbench.profiles",
    "transfer/policy/order.py": "import workbench.transfer.model.cost",
    "queueing/kernels/heaps.py": "import scipy.special",
    "sweeps.py": "import ipywidgets",
    "results.py": "import anywidget",
    "latency/box.py": "import plotly.graph_objects",
    "queueing/path.py": "import plotly.graph_objects",
    "cli/data.py": "import plotly.graph_objects",
    "blending/model/costs.py": "import workbench.chains.policy",
    "caching/model/loading.py": "import workbench.transfer.policy",
    "chains/policy/__init__.py": "import polars",
    "serving/model/run.py": "import torch",
    "operating/choices.py": "import simpy",
    "workloads/handle.py": "import multiprocessing",
    "stranger/__init__.py": "",
}
FINDINGS = (
    "workbench.records -> workbench.profiles (l.",
    "workbench.transfer.policy.order -> workbench.transfer.model.cost (l.",
    "workbench.queueing.kernels.heaps -> scipy (l.",
    "workbench.sweeps -> ipywidgets (l.",
    "workbench.results -> anywidget (l.",
    "workbench.latency.box -> plotly (l.",
    "workbench.queueing.path -> plotly (l.",
    "workbench.cli.data -> plotly (l.",
    "workbench.blending.model.costs -> workbench.chains.policy (l.",
    "workbench.caching.model.loading -> workbench.transfer.policy (l.",
    "workbench.chains.policy -> polars (l.",
    "workbench.serving.model.run -> torch (l.",
    "workbench.operating.choices -> simpy (l.",
    "workbench.workloads.handle -> multiprocessing (l.",
    "stranger",
)


def test_the_contracts_find_planted_imports(tmp_path):
    """The real contracts, on a copy of the package with an import planted against each."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for path in PACKAGE.rglob("*.py"):
        place = tmp_path / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    for name, line in PLANTS.items():
        place = tmp_path / "workbench" / name
        place.parent.mkdir(exist_ok=True)
        place.write_text((place.read_text() if place.exists() else "") + f"\n{line}\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 1, done.stdout + done.stderr
    missed = [finding for finding in FINDINGS if finding not in done.stdout]
    assert missed == [], done.stdout
    assert f"{len(CONTRACTS)} broken" in done.stdout
