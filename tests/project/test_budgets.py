"""The table of budgets: every budget has a benchmark, the missed ones are named, and a busy machine writes nothing."""

import ast
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from budgets import BUDGETS, Budget, table_of

TESTS = Path(__file__).resolve().parents[1]
BENCHMARKS = TESTS / "benchmarks"
BENCHMARK = """
def test_both(budget):
    budget("import", 0.12)
    budget("slope", {slope})
"""


def keys_given():
    """First arguments of all calls of `budget` in the benchmarks, both of a choice."""
    found = set()
    for path in BENCHMARKS.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "budget":
                key = node.args[0]
                for one in (key.body, key.orelse) if isinstance(key, ast.IfExp) else (key,):
                    found |= {one.value} if isinstance(one, ast.Constant) else {"dead", "hung"}  # a loop over both
    return found


def test_every_budget_has_a_benchmark():
    assert keys_given() == set(BUDGETS)


@pytest.mark.parametrize(
    ("key", "low", "high"),
    [
        ("import", -math.inf, 0.3), ("W2", 300_000, math.inf), ("million, memory", -math.inf, 2**30),
        ("paced", -0.01, 0.10), ("SimPy", 8000, math.inf), ("sweep", 1.8, math.inf), ("reproduce", -math.inf, 600),
        ("test", -math.inf, 1200), ("step time", -math.inf, 1e-6), ("hour", -math.inf, 0.15),
    ],
)  # fmt: skip
def test_budgets_are_what_was_promised(key, low, high):
    assert BUDGETS[key][2:4] == (low, high)


def test_the_table_shows_what_is_nearest_to_missing_and_names_what_is_missed():
    page = table_of({"import": [(0.1, "a"), (0.2, "b"), (0.05, "c")], "paced": [(0.02, "d"), (-0.015, "e")]}, "a day")
    rows = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if line.startswith("| ")}
    assert rows["`import workbench`"] == "| `import workbench` | at most 300 ms | 200 ms | b | yes |"
    paced = BUDGETS["paced"].what
    assert rows[paced] == f"| {paced} | -1 % to 10 % | -1.5 % | e | **missed** |"
    assert f"1 of {len(BUDGETS)} budgets are met. Missed: {paced}." in page
    assert "Not measured: explorer, warm cache: first figure; " in page
    assert len(rows) == len(BUDGETS) + 1  # and the heading


def test_no_number_meets_no_budget():
    assert not Budget("what", "s", high=1).met(math.nan)


@pytest.mark.parametrize(("slope", "met"), [(1.05, "2"), (1.2, "1")])
def test_benchmarks_write_the_table_where_the_machine_is_quiet(tmp_path, slope, met):
    shutil.copy(BENCHMARKS / "conftest.py", tmp_path)
    (tmp_path / "test_one.py").write_text(BENCHMARK.format(slope=slope))
    page, quiet = tmp_path / "BUDGETS.md", "import os; os.getloadavg = lambda: ({load}, 0.0, 0.0); "
    code = quiet + "import sys, pytest; sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--budgets', {page!r}]))"
    for load, written in ((1e3, False), (0.5, True)):
        done = subprocess.run(
            [sys.executable, "-c", code.format(load=load, page=str(page))], cwd=tmp_path, capture_output=True,
            text=True, env=os.environ | {"PYTHONPATH": str(TESTS / "support")},
        )  # fmt: skip
        assert done.returncode == (slope > 1.1), done.stdout + done.stderr
        assert page.is_file() == written
    assert f"{met} of {len(BUDGETS)} budgets are met" in page.read_text()
    assert ("MISSED" in done.stdout) == (slope > 1.1)
    assert re.search(r"load average 0\.5 when it began", page.read_text())
