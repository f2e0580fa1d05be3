"""The compiled cache cannot go stale: its key covers every workbench file a kernel imports, transitively."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import config

from workbench import jit


def test_the_key_changes_with_a_file_that_is_imported_through_another(tmp_path, monkeypatch):
    root = tmp_path / "workbench"
    (root / "deep").mkdir(parents=True)
    for package in (root, root / "deep"):
        (package / "__init__.py").write_text("")
    (root / "kernels.py").write_text("from workbench.deep import middle\n")
    (root / "deep" / "middle.py").write_text("from . import leaf\n")
    (root / "deep" / "leaf.py").write_text("VALUE = 1\n")
    (root / "deep" / "stranger.py").write_text("VALUE = 1\n")
    monkeypatch.setattr(jit, "_ROOT", root)
    before = jit.source_key(root / "kernels.py")
    (root / "deep" / "stranger.py").write_text("VALUE = 22\n")
    assert jit.source_key(root / "kernels.py") == before
    (root / "deep" / "leaf.py").write_text("VALUE = 22\n")
    assert jit.source_key(root / "kernels.py") != before


@pytest.mark.parametrize(
    "text",
    [
        "import workbench.leaf",
        "import os, workbench.leaf as there",
        "import os; import workbench.leaf",
        "if True: import workbench.leaf",
        "def f():\n\tfrom workbench import leaf",
        "from workbench import (  # all (or most)\n    errors,  # and\n    leaf as there,\n)",
        "from workbench import errors, \\\n    leaf",
        "from .leaf import VALUE",
        "from.import(leaf)",
    ],
)
def test_however_an_import_is_written_the_key_covers_it(text, tmp_path, monkeypatch):
    root = tmp_path / "workbench"
    root.mkdir()
    (root / "kernels.py").write_text(f"{text}\n")
    (root / "leaf.py").write_text("VALUE = 1\n")
    compile(text, "kernels.py", "exec")
    monkeypatch.setattr(jit, "_ROOT", root)
    assert set(jit.sources(root / "kernels.py")) == {root / "kernels.py", root / "leaf.py"}


def test_every_import_of_this_project_is_found():
    """As Python's own parser finds them."""
    root = Path(jit.__file__).parent
    for file in root.rglob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert not node.level, f"{file}: a relative import"
                names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        parts = [name.split(".") for name in names if name.startswith("workbench.")]
        places = [root.joinpath(*rest) for _, *rest in parts]
        files = {found for place in places for found in (place.with_suffix(".py"), place / "__init__.py")}
        assert {found for found in files if found.is_file()} <= set(jit.sources(file)), file


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from workbench import jit
import pathlib
jit._ROOT = pathlib.Path({folder!r}) / "workbench"
import kernels_under_test
print(kernels_under_test.double(21), sum(kernels_under_test.double.stats.cache_hits.values()))
"""


def test_machine_code_is_found_again_by_another_process(tmp_path, monkeypatch):
    (tmp_path / "kernels_under_test.py").write_text(
        "from workbench.jit import kernel\n\n\n@kernel\ndef double(x):\n    return 2 * x\n"
    )
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    program = PROGRAM.format(folder=str(tmp_path))

    def run():
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout.split()

    assert run() == ["42", "0"]
    assert run() == ["42", "1"]


def test_an_unwritable_cache_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("WORKBENCH_CACHE", str(blocked))

    @jit.kernel
    def triple(x):
        return 3 * x

    assert triple(2) == 6


def test_the_folder_of_machine_code_is_the_one_that_numba_uses(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "ours"))
    monkeypatch.setattr(config, "CACHE_DIR", "")
    assert jit.kernels_folder() == tmp_path / "ours" / "kernels"
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "numba"))
    assert jit.kernels_folder() == tmp_path / "numba"

    @jit.kernel
    def triple(x):
        return 3 * x

    assert triple(2) == 6
    assert len(list((tmp_path / "numba").rglob("*.nbi"))) == 1


def test_kernels_are_registered_and_say_whether_they_are_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_KERNELS", {})
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    @jit.kernel
    def idle(x):
        return x

    (name,) = jit.kernels()
    assert name.endswith("idle")
    assert not jit.is_compiled(name)
    idle(1.0)
    assert jit.is_compiled(name)


def test_a_lean_kernel_computes_the_same_and_makes_no_array(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    def last_row(table):
        row = table[-1]
        row[0] += 1.0
        return row.sum()

    @jit.kernel
    def may_make_one(count):
        return np.zeros(count).sum()

    @jit.lean_kernel
    def makes_one(count):
        return np.zeros(count).sum()

    tables = [np.arange(6.0).reshape(3, 2) for _ in range(2)]
    assert jit.lean_kernel(last_row)(tables[0]) == jit.kernel(last_row)(tables[1]) == 10.0
    assert (tables[0] == tables[1]).all()
    assert may_make_one(3) == 0.0  # and that is not remembered
    with pytest.raises(numba.TypingError):
        makes_one(3)


def test_an_inner_kernel_is_called_by_kernels_only(tmp_path, monkeypatch):
    """Before and after it has been compiled, and where its caller comes from the disk; there it has nothing alone."""
    (tmp_path / "kernels_under_test.py").write_text(
        "from workbench.jit import inner_kernel, kernel\n\n\n@inner_kernel\ndef inner(x):\n    return 2 * x\n\n\n"
        "@kernel\ndef double(x):\n    return inner(x)\n"
    )
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    refused = "\ntry:\n    kernels_under_test.inner(1)\nexcept TypeError as error:\n    print(error)"
    imports, called = PROGRAM.format(folder=str(tmp_path)).rsplit("\n", 2)[:2]
    program = f"{imports}{refused}\n{called}{refused}"
    sentence = "inner is an inner kernel; only other kernels can call it."
    for hits in "01":
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines() == [sentence, f"42 {hits}", sentence]
    assert [path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")] == ["kernels_under_test.double"]


def test_parts_of_parts_are_linked_once(tmp_path, monkeypatch):
    """A kernel called by two inner kernels of which one calls the other, and by the outer one."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    @jit.inner_kernel
    def leaf(row):
        row[0] += 1.0
        return row[0]

    @jit.inner_kernel
    def low(row):
        return 10.0 * leaf(row)

    @jit.inner_kernel
    def high(row):
        return 1000.0 * leaf(row) + low(row)

    @jit.lean_kernel
    def top(row):
        return 1e6 * leaf(row) + high(row) + low(row) / 1e3

    row = np.zeros(1)
    assert top(row) == 1e6 * 1 + (1000.0 * 2 + 10.0 * 3) + 10.0 * 4 / 1e3
    assert row[0] == 4.0


def test_all_that_is_compiled_alike_has_the_same_flags():
    lean, counted = jit._Flags(), jit._Flags()
    counted.nrt = True
    assert lean.copy() is jit._Flags().copy()
    assert counted.copy() is counted.copy() is not lean.copy()
    assert counted.copy().nrt


def test_a_part_comes_behind_all_that_call_it():
    """In whatever order callers are met: otherwise what calls it last would be left without it."""

    def part(*called):
        made = jit._Part.__new__(jit._Part)
        made._linking_libraries = called
        return made

    leaf = part()
    low = part(leaf)
    high, other = part(leaf, low), part(leaf)
    for callers in ([low, high, other], [other, high, low], [leaf, low, other, high]):
        order = jit._callers_first(callers)
        assert sorted(map(order.index, order)) == [0, 1, 2, 3]
        assert all(order.index(one) < order.index(called) for one in order for called in one._linking_libraries)


def test_a_kernel_that_lies_on_disk_counts_as_compiled(tmp_path, monkeypatch):
    """In a process that finds the outer kernel on disk, the inner one is not even loaded."""
    (tmp_path / "kernels_under_test.py").write_text(
        "from workbench.jit import kernel\n\n\n@kernel\ndef inner(x):\n    return 2 * x\n\n\n"
        "@kernel\ndef double(x):\n    return inner(x)\n"
    )
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    program = PROGRAM.format(folder=str(tmp_path)) + "\nprint(len(kernels_under_test.inner.signatures))"
    program += "\nprint(jit.is_compiled('kernels_under_test.inner'))"
    said = [subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
            for _ in range(2)]  # fmt: skip
    assert said == [["42", "0", "1", "True"], ["42", "1", "0", "True"]]


WARM = """
import sys
from workbench import jit
from workbench.cli import main
code = main(["warm"])
print([name for name, kernel in jit.kernels().items() if not kernel.signatures])
sys.exit(code)
"""


@pytest.mark.timeout(1500)  # minutes of compiling, and as long again where another worker compiles beside
def test_warm_compiles_every_kernel_and_names_the_folder(tmp_path):
    """From nothing. A new kernel that this misses needs a call of its model in workbench/cli/warming.py."""
    place = tmp_path / "numba"
    environment = {**os.environ, "WORKBENCH_CACHE": str(tmp_path / "other"), "NUMBA_CACHE_DIR": str(place)}
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    sentence, without = done.stdout.splitlines()
    assert without == "[]"
    files = Path(jit.__file__).parent.rglob("*.py")
    decorated = sum(len(re.findall(r"\n@(?:lean_)?kernel\n", path.read_text())) for path in files)
    assert decorated > 50
    assert sentence == f"All {decorated} kernels are compiled; they lie in {place}."
    assert len(list(place.rglob("*.nbi"))) == decorated
    assert not (tmp_path / "other" / "kernels").exists()
    hand_on(place, jit.kernels_folder())


def hand_on(made: Path, kept: Path) -> None:
    """Machine code goes where all tests find theirs, so that those to come need not compile it again."""
    kept.mkdir(parents=True, exist_ok=True)
    for folder in made.iterdir():
        if not (kept / folder.name).exists():
            beside = shutil.copytree(folder, kept / f".{folder.name}-{os.getpid()}")
            try:
                beside.rename(kept / folder.name)
            except OSError:  # another process has begun that folder meanwhile
                shutil.rmtree(beside)


def test_warm_says_which_kernels_no_example_reaches(monkeypatch, capsys):
    from workbench.cli import main, warming

    @jit.kernel
    def forgotten(x):
        return x

    warming.load_kernels()
    forgotten_name = next(name for name in jit.kernels() if name.endswith("forgotten"))
    monkeypatch.setattr(jit, "_KERNELS", {"workbench.forgotten": jit._KERNELS.pop(forgotten_name)})
    parts = ("_transfer", "_queueing", "_latency", "_caching", "_serving", "_pooling", "_chains", "_blending")
    for part in parts:
        monkeypatch.setattr(warming, part, lambda: None)
    monkeypatch.setattr(warming, "_catalogue", lambda tell: None)
    assert main(["warm"]) == 1
    assert capsys.readouterr().err == (
        "workbench: No example reaches workbench.forgotten; they are compiled when they are first used.\n"
    )


def test_warm_refuses_where_nothing_can_be_compiled_or_kept(monkeypatch, capsys, tmp_path):
    from workbench.cli import main

    (tmp_path / "file").write_text("")
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path / "file" / "kernels"))
    assert main(["warm"]) == 2
    assert "set WORKBENCH_CACHE to a folder that can be written" in capsys.readouterr().err
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert main(["warm"]) == 2
    assert "NUMBA_DISABLE_JIT is set" in capsys.readouterr().err
