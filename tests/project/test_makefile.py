"""What `make` installs: the pinned torch or none, into a Python that is new enough (a script stands for it and pip)."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIN = next(line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch=="))
CPU_INDEX = "--index-url https://download.pytorch.org/whl/cpu"

PYTHON = """#!/bin/sh
echo "$@" >>"$LOG"
case "$*" in
  --version) echo "Python $VERSION" ;;
  *version_info*) [ "$VERSION" = 3.9.2 ] ;;
  *importlib.metadata*) cat "$HAVE_TORCH" ;;
  "-m venv .venv") mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
  *"pip install"*--no-index*) exit 1 ;;
  *"pip install"*--index-url*) [ "$ONLINE" = yes ] && echo "$PIN" >"$HAVE_TORCH" ;;
esac
"""


@pytest.fixture
def make(tmp_path):
    """Run `make .venv/.lab` with a Python of a version, a torch that is there, and the CPU index in reach or not."""
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    python = tmp_path / "python"
    python.write_text(PYTHON)
    python.chmod(0o755)

    def run(version="3.11.7", torch="", online=True):
        (tmp_path / "torch").write_text(torch + "\n" if torch else "")
        (tmp_path / "log").write_text("")
        environment = {
            **os.environ, "LOG": str(tmp_path / "log"), "HAVE_TORCH": str(tmp_path / "torch"), "VERSION": version,
            "PIN": PIN, "ONLINE": "yes" if online else "no", "MAKEFLAGS": "",
        }  # fmt: skip
        command = ["make", ".venv/.lab", f"PYTHON={python}"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        installed = [line for line in (tmp_path / "log").read_text().splitlines() if "pip install" in line]
        return done, installed

    return run


def extras(installed):
    return re.search(r"-e \.\[(.*)\]$", installed[-1]).group(1)


def test_the_pinned_torch_is_not_installed_again(make):
    done, installed = make(torch=PIN)
    assert done.returncode == 0, done.stderr
    assert len(installed) == 1
    assert extras(installed) == "lab,torch"


@pytest.mark.parametrize("before", ["", "torch==2.12.1"])
def test_another_torch_is_replaced_by_the_pin_from_the_cpu_index(make, before):
    """Were it taken for torch, pip would fetch the pin from PyPI: the large build."""
    done, installed = make(torch=before)
    assert done.returncode == 0, done.stderr
    assert [CPU_INDEX in line and PIN in line for line in installed] == [False, True, False]
    assert extras(installed) == "lab,torch"


@pytest.mark.parametrize("before", ["", "torch==2.12.1"])
def test_without_the_cpu_index_there_are_no_real_runs_and_nothing_large_is_fetched(make, before):
    done, installed = make(torch=before, online=False)
    assert done.returncode == 0, done.stderr
    assert f"{PIN} was not found; real runs will say 'not run'" in done.stdout
    assert extras(installed) == "lab"


def test_a_folder_made_by_an_old_python_is_named_with_the_remedy(make, tmp_path):
    make()
    (tmp_path / ".venv" / ".lab").unlink()
    done, installed = make(version="3.9.2")
    assert done.returncode != 0
    assert ".venv was made by Python 3.9.2, and 3.11 is needed: rm -r .venv" in done.stderr
    assert installed == []


def test_an_old_python_makes_no_folder(make, tmp_path):
    done, _ = make(version="3.9.2")
    assert done.returncode != 0
    assert "is Python 3.9.2, and 3.11 is needed: make PYTHON=python3.11" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_every_place_that_names_a_torch_version_names_the_pin():
    from workbench.errors import install_command

    assert f"pip install {PIN} {CPU_INDEX}" in install_command("torch")
    texts = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml", "environment.yml")]
    texts += [*(ROOT / "workbench").rglob("*.py"), *(ROOT / "notebooks").glob("*.ipynb"), ROOT / ".ci" / "run"]
    named = {found for path in texts for found in re.findall(r"torch==[0-9.]*[0-9]", path.read_text())}
    assert named == {PIN}
    assert re.search(r"requires-python = \">=3\.11\"", (ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize(
    ("browser", "user", "printed"),
    [
        (True, 1000, ["make test"]),
        (False, 1000, ["make test"]),
        (False, 0, ["apt-get update -qq", "make test"]),
    ],
)
def test_ci_installs_a_browser_only_where_there_is_none_and_it_may(tmp_path, browser, user, printed):
    for name in ("make", "apt-get", *(["chromium"] if browser else [])):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
    (tmp_path / "id").write_text(f"#!/bin/sh\necho {user}\n")
    for path in tmp_path.iterdir():
        path.chmod(0o755)
    for name in ("bash", "sh", "dirname", "realpath"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = subprocess.run([ROOT / ".ci" / "run"], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()) == (0, printed)
    assert ("tests in a browser are skipped" in done.stderr) == (not browser and user != 0)


def test_what_is_installed_is_said_before_it_is(make):
    done, _ = make()
    said = done.stdout
    assert (
        said.index("Installing the workbench") < said.index(f"{PIN}, CPU build ...") < said.index("constraints.txt ...")
    )
    assert f"{PIN}, CPU build" not in make(torch=PIN)[0].stdout
