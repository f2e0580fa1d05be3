"""A full disk, or a file that may not grow: what was kept before is left as it was, and nothing is half-written."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parent / "support"
OWN_DISK = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=16m none "$1" && shift && exec "$@"', "sh"]
"""A program with a small disk of its own at a folder, which nobody else sees and which is gone when it ends."""

KEPT = ("result", "run", "trace", "events", "recorded", "page", "gallery")


def has_own_disk(folder):
    """Whether this system lets anybody have one."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*OWN_DISK, str(folder), "true"], capture_output=True).returncode == 0


@pytest.fixture(scope="module", params=["disk", "files"])
def found(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    command = [sys.executable, str(SUPPORT / "full_disk.py"), str(folder), request.param]
    if request.param == "disk":
        if not has_own_disk(folder):
            pytest.skip("this system gives no small disk to fill up")
        command = [*OWN_DISK, str(folder), *command]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_sweep_keeps_what_it_has_and_goes_on_from_there(found):
    """The third of four results is too large; on a disk that is full to its last page so is the second."""
    sweep = found["sweep"]
    assert sweep["told"].startswith("UserError: ")
    assert "/sweep takes no more (" in sweep["told"]
    assert sweep["left"] == []
    assert (sweep["kept"][0], sweep["kept"][2:]) == (True, [False, False])
    assert sweep["rows"] == sweep["sizes"]


@pytest.mark.parametrize("what", KEPT)
def test_the_old_one_is_left_whole_and_nothing_beside_it(found, what):
    one = found[what]
    assert one["changed"] == []
    assert "takes no more (" in one["told"]
    assert (one["again"], one["as before"]) == ("written", True)
