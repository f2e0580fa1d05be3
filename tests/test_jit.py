"""The compiled cache cannot go stale: its key covers every workbench file a kernel imports, transitively."""

import subprocess
import sys

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
    monkeypatch.setenv("WORKBENCH_CACHE", str(blocked))

    @jit.kernel
    def triple(x):
        return 3 * x

    assert triple(2) == 6
